/**
 * A conversation on the terminal that survives its process.
 *
 * Every message is a run in a store. A chat that was stopped, or killed,
 * goes on where it was: questions that were open are asked again, calls that
 * were cut off are decided about, an answer that was due is given.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Agent from "../Agent.ts"
import * as AgentFile from "../file/AgentFile.ts"
import * as Kernel from "../Kernel.ts"
import type { StoreError } from "../KernelError.ts"
import * as Policy from "../Policy.ts"
import * as ProtocolRegistry from "../ProtocolRegistry.ts"
import { Provider } from "../Provider.ts"
import type { RunStore } from "../RunStore.ts"
import { SkillRegistry } from "../SkillRegistry.ts"
import * as Answer from "./chat/answer.ts"
import { Lines } from "./chat/lines.ts"
import * as Script from "./chat/script.ts"
import * as Session from "./chat/session.ts"
import { instructions } from "./commands/shared.ts"
import { Codes, CommandFailed, usage } from "./exit.ts"
import { type Options as LiveOptions, resolve, skillsOf } from "./live.ts"
import * as Markdown from "./markdown.ts"
import { paint } from "./pen.ts"
import { Screen } from "./screen.ts"
import * as Store from "./store.ts"
import * as Text from "./text.ts"

/**
 * Who talks, and where it is kept.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Pick<LiveOptions, "skills"> {
  readonly session: string
  /** The file of an agent to talk with, under what else is told here. */
  readonly agent?: string | undefined
  readonly instructions?: string | undefined
  readonly maxSteps?: number | undefined
  readonly dialect?: Agent.DialectName | undefined
  /** Where it is kept: a store, or the SQLite file of one. */
  readonly store: string
  /** A model of the network, or the file of a scripted one; the agent's own model where nothing is said. */
  readonly speaker: { readonly model: string } | { readonly script: string } | undefined
  /** Allow every call without asking. */
  readonly yes: boolean
  readonly colors?: boolean | undefined
}

/**
 * Talks until nobody has anything more to say.
 *
 * @category running
 * @since 0.1.0
 */
export const chat = Effect.fnUntraced(function* (options: Options) {
  if (!Session.isName(options.session)) {
    return yield* usage("the name of a session is of letters, digits, '.', '_' and '-', 64 at most")
  }
  const told = options.agent === undefined ? undefined : yield* readAgent(options.agent)
  const { model, provider } = yield* speakerOf(options, told)
  const place = Store.ofPath(options.store)
  const store = yield* Store.open(place, { exists: false })
  const base: Talker = told ?? Agent.make({ name: "chat", instructions, model, maxSteps: 20, skills: "all" })
  const agent: Talker = {
    ...base,
    instructions: options.instructions ?? base.instructions,
    model,
    maxSteps: options.maxSteps ?? base.maxSteps,
    dialect: options.dialect ?? base.dialect,
    // In a conversation plain talk is an answer.
    prose: base.prose === "auto" ? "final" : base.prose,
    skills: options.skills === "none" ? undefined : base.skills
  }
  const ground = Kernel.layer.pipe(
    Layer.provide([
      Layer.orDie(ProtocolRegistry.layer()),
      yield* Store.media(place),
      Layer.succeed(Provider, provider),
      options.yes ? Layer.empty : careful
    ]),
    Layer.provideMerge(Layer.merge(skillsOf(options.skills), store)),
    Layer.catch((error) =>
      Layer.effectContext<Ground, CommandFailed, never>(Effect.fail(usage(Text.excerpt(error.message, 400))))
    )
  )
  yield* talk(agent, options).pipe(
    Effect.catchTag("StoreError", (error: StoreError) =>
      Effect.fail(new CommandFailed({ code: Codes.failed, reason: Text.excerpt(error.message, 400), tag: error._tag }))
    ),
    Effect.provide(ground)
  )
})

type Talker = Agent.Agent<unknown>

const readAgent = (file: string) =>
  Effect.mapError(AgentFile.load(file), (error) => usage(Text.excerpt(error.message, 400)))

/** Who speaks: what was said on the command line, or else the agent's own model. */
const speakerOf = Effect.fnUntraced(function* ({ speaker }: Options, agent: Talker | undefined) {
  if (speaker !== undefined && "script" in speaker) {
    return { model: "scripted", provider: yield* Script.provider(speaker.script) }
  }
  if (speaker !== undefined) return yield* resolve(speaker.model)
  if (agent === undefined) return yield* usage("there is no model to talk with")
  if (typeof agent.model === "string") return yield* resolve(agent.model)
  const { id, provider } = agent.model
  if (provider === undefined) return yield* usage(`the model ${Text.excerpt(id, 80)} of the agent names no provider`)
  // What the file says of its model goes before what is known of it.
  return { ...(yield* resolve(`${provider}/${id}`)), model: agent.model }
})

type Ground = Kernel.Kernel | RunStore | SkillRegistry

/** A person is asked before anything that cannot be taken back. */
const careful = Policy.layer((call) =>
  Effect.succeed(call.effects === "write" ? Policy.confirm("it may change something") : Policy.allowed)
)

// ---------------------------------------------------------------- the conversation

const talk = Effect.fnUntraced(function* (agent: Talker, options: Options) {
  const screen = yield* Screen
  const lines = yield* Lines
  const look = { columns: screen.columns, colors: options.colors ?? screen.colors }
  const setting: Answer.Setting = { agent, look, always: new Set() }
  const note = (text: string) => screen.progress(`${paint(text, "quiet", look)}\n`)
  let session = options.session

  const unlessWaiting = (ending: Answer.Ending) =>
    ending === "waiting"
      ? Effect.fail(new CommandFailed({ code: Codes.paused, reason: `the session ${session} waits for you` }))
      : Effect.void

  /** Goes on with what the last life of the session left open. */
  const begin = Effect.gen(function* () {
    const before = yield* Session.last(session)
    const count = yield* Session.size(session)
    note(
      `session ${session}${count === 0 ? "" : `, ${Text.count(count, "message")} so far`}; /help tells what can be typed`
    )
    if (before === undefined || before.status.type === "completed") return
    const question = (yield* Session.exchanges(session, 1))[0]?.asked ?? ""
    note(`going on with: ${Text.excerpt(question, look.columns - 20)}`)
    return yield* unlessWaiting(yield* Answer.takeUp(setting, before.runId))
  })

  const ask = Effect.fnUntraced(function* (text: string) {
    const history = yield* Session.history(session)
    const runId = Session.runIdOf(session, (yield* Session.size(session)) + 1)
    return yield* unlessWaiting(yield* Answer.follow(setting, runId, Kernel.stream(agent, text, { runId, history })))
  })

  const retry = Effect.gen(function* () {
    const before = yield* Session.last(session)
    if (before === undefined || before.status.type === "completed") return note("there is nothing to go on with")
    return yield* unlessWaiting(yield* Answer.takeUp(setting, before.runId))
  })

  const enter = Effect.fnUntraced(function* (name: string) {
    if (!Session.isName(name)) return note("the name of a session is of letters, digits, '.', '_' and '-'")
    session = name
    yield* begin
  })

  const history = Effect.gen(function* () {
    const markdown = Markdown.make(look.colors)
    const exchanges = yield* Session.exchanges(session, 50)
    if (exchanges.length === 0) note("nothing was said yet")
    for (const { answered, asked, status } of exchanges) {
      screen.out(`${paint("you", "title", look)}  ${Text.paragraph(asked)}`)
      screen.out(answered === undefined ? `(${status})\n` : markdown.push(answered) + markdown.end())
    }
  })

  const skills = Effect.gen(function* () {
    const all = yield* (yield* SkillRegistry).all
    if (all.length === 0 || agent.skills === undefined) return note("there are no skills")
    for (const { description, effects, name } of all) {
      const asks = effects === "write" && !options.yes ? ", asks before it runs" : ""
      screen.progress(`${Text.excerpt(name, 40)} (${effects}${asks})  ${Text.excerpt(description, look.columns)}\n`)
    }
  })

  /** Does what a line that begins with a slash says; true ends the chat. */
  const command = Effect.fnUntraced(function* (line: string) {
    const [word = "", name] = line.slice(1).trim().split(/\s+/)
    switch (word) {
      case "exit":
      case "quit":
        return true
      case "help":
        screen.progress(help)
        break
      case "history":
        yield* history
        break
      case "skills":
        yield* skills
        break
      case "retry":
        yield* retry
        break
      case "new":
        yield* enter(name ?? (yield* Session.freeName(session)))
        break
      case "sessions":
        for (const known of yield* Session.names) screen.progress(`${known === session ? "*" : " "} ${known}\n`)
        break
      case "session":
        if (name === undefined) note(session)
        else yield* enter(name)
        break
      default:
        note(`there is no /${Text.excerpt(word, 40)}; /help tells what there is`)
    }
    return false
  })

  yield* begin
  while (true) {
    const line = yield* lines.next("> ")
    if (Option.isNone(line)) return
    const text = line.value.trim()
    if (text === "") continue
    if (!text.startsWith("/")) yield* ask(text)
    else if (text.startsWith("//")) yield* ask(text.slice(1))
    else if (yield* command(text)) return
  }
})

const help = `/history        what was said
/skills         what the model may call
/retry          go on with an answer that was stopped or failed
/new [name]     another session
/sessions       all sessions of the store
/session NAME   go to a session
/exit           end; Ctrl-D does it too
//text          a message that begins with a slash
Ctrl-C stops the answer that is being given.
`
