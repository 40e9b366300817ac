/** The agent's side of the protocol: its methods, and the open sessions. */

import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Agent } from "../../Agent.ts"
import type { JsonObject } from "../../kit/json.ts"
import { shorten } from "../../kit/text.ts"
import type * as Kernel from "../../Kernel.ts"
import * as Contents from "../../Content.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { RunStore } from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import { type Abilities, editorOf } from "./acpEditor.ts"
import { decode, type Peer, type Receiver } from "./acpPeer.ts"
import * as Problems from "./acpProblem.ts"
import type { AcpProblem } from "./acpProblem.ts"
import { prompt, send, type Session } from "./acpSession.ts"
import type { Mode, Opened } from "./acpTypes.ts"
import { type Update, UpdateFold } from "./acpUpdates.ts"
import * as Wire from "./acpWire.ts"
import * as Stored from "./storedSessions.ts"

/** What an agent is served with. */
export interface Serving<S extends AnySkill<unknown>, R> {
  readonly agent: Agent<unknown, S, R, unknown>
  readonly info: JsonObject
  readonly modes: ReadonlyArray<Mode>
  readonly similar: Session<S, R>["similar"]
  /** Builds the services of a session. They live until the scope closes. */
  readonly services: (
    session: Opened
  ) => Effect.Effect<Context.Context<Kernel.Kernel | RunStore | Kernel.Needs<R>>, AcpProblem, Scope.Scope>
}

/** Sessions that a client may have open at once. */
const maxSessions = 100

/** Runs of a session that are sent when it is loaded. */
const maxLoaded = 1_000

interface OpenSession<S extends AnySkill<unknown>, R> extends Session<S, R> {
  readonly scope: Scope.Closeable
  modeId: string | undefined
}

/** The sessions of one client. */
export class AcpAgent<S extends AnySkill<unknown>, R> implements Receiver<RunStore | Scope.Scope> {
  readonly #serving: Serving<S, R>
  readonly #peer: Peer
  readonly #sessions = new Map<string, OpenSession<S, R>>()
  #abilities: Abilities

  constructor(serving: Serving<S, R>, peer: Peer) {
    this.#serving = serving
    this.#peer = peer
  }

  request(method: string, params: unknown): Effect.Effect<JsonObject, AcpProblem, RunStore | Scope.Scope> | undefined {
    switch (method) {
      case "initialize":
        return Effect.map(decode(Wire.Initialize, params), (given) => this.#initialized(given))
      case "session/new":
        return Effect.flatMap(decode(Wire.NewSession, params), (given) => this.#create(given))
      case "session/load":
        return Effect.flatMap(decode(Wire.LoadSession, params), (given) => this.#load(given))
      case "session/list":
        return Effect.flatMap(decode(Wire.ListSessions, params), (given) => this.#list(given))
      case "session/set_mode":
        return Effect.flatMap(decode(Wire.SetMode, params), (given) => this.#setMode(given))
      case "session/close":
        return Effect.flatMap(decode(Wire.OfSession, params), ({ sessionId }) => this.#close(sessionId))
      case "session/prompt":
        return Effect.flatMap(decode(Wire.Prompt, params), (given) =>
          Effect.flatMap(this.#open(given.sessionId), (session) => prompt(session, given.prompt))
        )
      default:
        return undefined
    }
  }

  notification(method: string, params: unknown): Effect.Effect<void> {
    if (method !== "session/cancel") return Effect.void
    return Effect.ignore(
      Effect.flatMap(decode(Wire.OfSession, params), ({ sessionId }) => this.#cancel(this.#sessions.get(sessionId)))
    )
  }

  #initialized({ clientCapabilities }: typeof Wire.Initialize.Type): JsonObject {
    this.#abilities = clientCapabilities
    return {
      protocolVersion: 1,
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
        mcpCapabilities: { http: true, sse: true },
        sessionCapabilities: { list: {}, close: {} }
      },
      agentInfo: this.#serving.info,
      authMethods: []
    }
  }

  #create(given: typeof Wire.NewSession.Type) {
    return Effect.gen({ self: this }, function* () {
      const sessionId = yield* Stored.newId
      const session = yield* this.#build(sessionId, given)
      return { sessionId, ...this.#modesOf(session) }
    })
  }

  /** Opens a stored session, and sends what happened in it so far. */
  #load(given: typeof Wire.LoadSession.Type) {
    return Effect.gen({ self: this }, function* () {
      const { sessionId } = given
      if (this.#sessions.get(sessionId)?.cancelling !== undefined) {
        return yield* Problems.invalidRequest("the session answers a prompt")
      }
      const runs = yield* Effect.mapError(Stored.runsOf(sessionId, maxLoaded), storeFailed)
      if (runs.length === 0) return yield* Problems.notFound(`there is no session ${sessionId}`)
      yield* this.#close(sessionId)
      const session = yield* this.#build(sessionId, given)
      for (const { runId } of runs.toReversed()) {
        const fold = new UpdateFold(given.cwd)
        yield* Effect.mapError(
          Stream.runForEach(Stored.eventsOf(runId), (event) => send(session, [...asked(event), ...fold.push(event)])),
          storeFailed
        )
        yield* send(session, fold.stop())
      }
      return this.#modesOf(session)
    })
  }

  #list({ cursor, cwd }: typeof Wire.ListSessions.Type) {
    return Effect.map(
      Effect.mapError(Stored.list(Number(cursor ?? 0), cwd ?? undefined), storeFailed),
      ({ next, sessions }) => ({
        sessions: sessions.map((session) => ({ ...session })),
        ...(next === undefined ? {} : { nextCursor: String(next) })
      })
    )
  }

  #build(sessionId: string, { cwd, mcpServers }: typeof Wire.NewSession.Type) {
    return Effect.gen({ self: this }, function* () {
      if (this.#sessions.size >= maxSessions) return yield* Problems.failed(`${maxSessions} sessions are open`)
      const { agent, modes, services, similar } = this.#serving
      const scope = yield* Scope.fork(yield* Effect.scope)
      const mode = { current: modes[0]?.id }
      const opened: Opened = {
        id: sessionId,
        cwd,
        mcpServers: mcpServers ?? [],
        editor: editorOf(this.#peer, sessionId, this.#abilities, (command, terminalId) => {
          const session = this.#sessions.get(sessionId)
          return session?.fold === undefined ? Effect.void : send(session, session.fold.terminal(command, terminalId))
        }),
        mode: Effect.sync(() => mode.current)
      }
      const built = yield* services(opened).pipe(
        Scope.provide(scope),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
      const session: OpenSession<S, R> = {
        peer: this.#peer,
        sessionId,
        cwd,
        always: new Set(),
        similar,
        agent,
        services: built,
        cancelling: undefined,
        fold: undefined,
        scope,
        get modeId() {
          return mode.current
        },
        set modeId(id) {
          mode.current = id
        }
      }
      this.#sessions.set(sessionId, session)
      return session
    })
  }

  #open(sessionId: string): Effect.Effect<OpenSession<S, R>, AcpProblem> {
    const session = this.#sessions.get(sessionId)
    return session === undefined
      ? Effect.fail(Problems.notFound(`the session ${sessionId} is not open`))
      : Effect.succeed(session)
  }

  #setMode({ modeId, sessionId }: typeof Wire.SetMode.Type) {
    return Effect.flatMap(this.#open(sessionId), (session) => {
      if (!this.#serving.modes.some(({ id }) => id === modeId)) {
        return Effect.fail(Problems.invalidParams(`there is no mode ${shorten(modeId, 100)}`))
      }
      session.modeId = modeId
      return Effect.succeed({})
    })
  }

  #modesOf({ modeId }: OpenSession<S, R>): JsonObject {
    if (modeId === undefined) return {}
    return { modes: { currentModeId: modeId, availableModes: this.#serving.modes.map((mode) => ({ ...mode })) } }
  }

  #cancel(session: OpenSession<S, R> | undefined): Effect.Effect<void> {
    const cancelling = session?.cancelling
    return cancelling === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(cancelling, undefined))
  }

  #close(sessionId: string): Effect.Effect<JsonObject> {
    return Effect.suspend(() => {
      const session = this.#sessions.get(sessionId)
      if (session === undefined) return Effect.succeed({})
      this.#sessions.delete(sessionId)
      return Effect.as(Effect.andThen(this.#cancel(session), Scope.close(session.scope, Exit.void)), {})
    })
  }
}

const storeFailed = () => Problems.failed("the store of the sessions failed")

/** Returns the message that started a run. */
const asked = (event: RunEvent): ReadonlyArray<Update> => {
  if (event.type !== "run_started") return []
  return event.messages.slice(event.history).flatMap(({ content }) =>
    content.map((part) => ({
      sessionUpdate: "user_message_chunk",
      content: { type: "text", text: Contents.isMedia(part) ? Contents.placeholder(part) : Contents.toText(part) }
    }))
  )
}
