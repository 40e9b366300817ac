/**
 * One server of a hub: its connection, and its shown and hidden tools. A tool is hidden and cannot be called while its
 * definition is not the accepted one. Pins are never dropped, however often a server renames its tools.
 */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { McpError } from "../../KernelError.ts"
import type { Limits } from "../../Limits.ts"
import type { McpServer } from "../McpConfig.ts"
import type { McpConnection, ServerInfo } from "../McpConnection.ts"
import type { HiddenTool } from "../McpHub.ts"
import type { OAuth } from "../OAuth.ts"
import type { Pins, ToolPins } from "../ToolPins.ts"
import { Attended } from "./authorization.ts"
import * as Definition from "./definition.ts"
import { type Attendant, patienceOf } from "./hubHost.ts"

export interface HubTool extends Definition.Definition {
  readonly hidden: HiddenTool["reason"] | undefined
}

export class HubServer {
  readonly config: McpServer
  readonly connection: McpConnection
  readonly oauth: OAuth | undefined
  readonly attendant: Attendant
  tools: ReadonlyArray<HubTool> = []
  info: ServerInfo | undefined
  /** The failure of the last read, or undefined before the first one. */
  problem: McpError | undefined
  /** Updates the status of the servers. */
  publish: Effect.Effect<void> = Effect.void
  private listed: ReadonlyArray<McpSchema.Tool> | undefined
  private readonly pins: ToolPins["Service"]
  private readonly lock = Semaphore.makeUnsafe(1)

  constructor(
    connection: McpConnection,
    oauth: OAuth | undefined,
    pins: ToolPins["Service"],
    attendant: Attendant = { elicit: undefined, patience: Duration.zero }
  ) {
    this.attendant = attendant
    this.config = connection.server
    this.connection = connection
    this.oauth = oauth
    this.pins = pins
  }

  get name(): string {
    return this.config.name
  }

  /** The tools that may be shown and called. */
  get shown(): ReadonlyArray<HubTool> {
    return this.tools.filter((tool) => tool.hidden === undefined)
  }

  /**
   * Returns the time for a call, including the time of a person to grant scopes and to answer. The connection has its
   * own limits.
   */
  timeout({ cleanUpTimeout }: Limits): Duration.Duration {
    const { connectTimeout, progressTimeout, timeout } = this.config
    const asked = patienceOf(this.config, this.attendant)
    const times = [Duration.max(timeout, progressTimeout), connectTimeout, this.oauth?.patience ?? Duration.zero, asked]
    return times.reduce((sum, time) => Duration.sum(sum, time), cleanUpTimeout)
  }

  /** Runs a request. If the server is unavailable, updates its status before failing. */
  request<A>(request: (connection: McpConnection) => Effect.Effect<A, McpError>): Effect.Effect<A, McpError> {
    return Effect.tapError(request(this.connection), (error) => {
      if (error.reason !== "connect" || this.problem !== undefined) return Effect.void
      this.problem = error
      return this.publish
    })
  }

  /** Reads the list of tools if it may have changed. Returns true if anything is different. Asks no person. */
  readonly read: Effect.Effect<boolean, McpError> = Effect.suspend(() =>
    Effect.provideService(this.lock.withPermits(1)(this.readList), Attended, false)
  )

  /** Accepts a hidden tool in the shown definition. Returns false if it has changed again. */
  approve(name: string, hash: string): Effect.Effect<boolean> {
    return this.lock.withPermits(1)(
      Effect.gen({ self: this }, function* () {
        // The first tool of a name is never hidden as `repeated`.
        const tool = this.tools.find(({ tool }) => tool.name === name)
        if (tool?.hidden === undefined || tool.hash !== hash) return false
        yield* this.pins.save(this.name, new Map([[name, hash]]))
        yield* this.compare(this.tools)
        return true
      })
    )
  }

  private readonly readList = Effect.gen({ self: this }, function* () {
    const before = this.problem
    const read = yield* Effect.result(this.connection.tools)
    if (Result.isFailure(read)) return yield* (this.problem = read.failure)
    const listed = read.success
    this.info = yield* this.connection.info
    this.problem = undefined
    if (listed === this.listed) return before !== undefined
    yield* this.compare(yield* Effect.forEach(listed, Definition.make))
    this.listed = listed
    return true
  })

  private readonly compare = Effect.fnUntraced(
    { self: this },
    function* (definitions: ReadonlyArray<Definition.Definition>) {
      const before = new Set(this.tools.filter((tool) => tool.hidden !== undefined).map((tool) => tool.hash))
      const { fresh, tools } = compared(definitions, yield* this.pins.load(this.name))
      if (fresh.size > 0) yield* this.pins.save(this.name, fresh)
      this.tools = tools
      for (const [reason, why] of Object.entries(reasons)) {
        const news = tools.filter(({ hash, hidden }) => hidden === reason && !before.has(hash))
        if (news.length === 0) continue
        const names = Definition.firstOf(news.map(({ tool }) => tool.name))
        yield* Effect.logWarning(`MCP server '${this.name}' has tools that are hidden (${names}), each ${why}`)
      }
    }
  )
}

/** The reasons for hiding a tool, as the ends of sentences. */
export const reasons: { readonly [reason in HiddenTool["reason"]]: string } = {
  changed: "because its definition changed since it was accepted; approve it to use it again",
  repeated: "because another tool of the server has the same name",
  excess: "because too many tools of the server were accepted already; approve it to use it"
}

/** Decides which tools are hidden. New ones are accepted and pinned as long as there is space. */
const compared = (definitions: ReadonlyArray<Definition.Definition>, pins: Pins) => {
  const fresh = new Map<string, string>()
  const seen = new Set<string>()
  let room = maxPinned - JSON.stringify([...pins]).length
  const tools = definitions.map((definition): HubTool => {
    const { hash } = definition
    const { name } = definition.tool
    if (seen.has(name)) return { ...definition, hidden: "repeated" }
    seen.add(name)
    const pinned = pins.get(name)
    if (pinned !== undefined) return { ...definition, hidden: pinned === hash ? undefined : "changed" }
    const size = JSON.stringify([name, hash]).length + 1
    if (size > room) return { ...definition, hidden: "excess" }
    room -= size
    fresh.set(name, hash)
    return { ...definition, hidden: undefined }
  })
  return { fresh, tools }
}

// Maximum UTF-16 units of the stored pins of one server: a few thousand names of usual length.
const maxPinned = 256 * 1024

/** Reads the list again whenever it has changed, and retries an unavailable server at growing intervals. */
export const follow = Effect.fnUntraced(function* (server: HubServer, refresh: Effect.Effect<void, McpError>) {
  let pause = shortest
  for (;;) {
    const changed = server.connection.awaitChanges
    yield* isTransient(server.problem) ? Effect.timeoutOption(changed, pause) : changed
    // Waits for further changes of the same burst.
    yield* Effect.sleep("100 millis")
    yield* Effect.ignore(refresh)
    pause = server.problem === undefined ? shortest : Math.min(pause * 2, longest)
  }
})

const shortest = 1_000
const longest = 60_000

// The other problems need a person.
const isTransient = (problem: McpError | undefined): boolean =>
  problem !== undefined && ["connect", "disconnected", "timeout", "outcome_unknown"].includes(problem.reason)
