/**
 * What is typed in a chat, and what becomes of it.
 *
 * A line is a message, or a command when it begins with a slash. The session a
 * message goes to may change with any line; it is kept nowhere but in the store.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Agent } from "../../Agent.ts"
import * as Agents from "../../Agent.ts"
import * as Kernel from "../../Kernel.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import { Codes, CommandFailed } from "../exit.ts"
import * as Markdown from "../markdown.ts"
import { paint } from "../pen.ts"
import { Screen, type Shape as ScreenShape } from "../screen.ts"
import * as Text from "../terminalText.ts"
import * as Answer from "./answer.ts"
import { isEnd, Lines } from "./lines.ts"
import * as Session from "./chatSession.ts"

/** How it is talked. */
export interface Options {
  /** The session to begin with. */
  readonly session: string
  /** Whether every call runs without asking. */
  readonly yes: boolean
  readonly colors?: boolean | undefined
}

/**
 * Talks with an agent until nobody has anything more to say.
 *
 * Without a terminal, a message that has no answer is the last one.
 */
export const talk = Effect.fnUntraced(function* (agent: Agent<unknown>, options: Options) {
  const screen = yield* Screen
  const lines = yield* Lines
  const look = { columns: screen.columns, colors: options.colors ?? screen.colors }
  const setting: Answer.Setting = { agent, look, always: new Set() }
  const { isTerminal } = lines
  const place: Place = { screen, setting, isTerminal, asks: !options.yes, session: options.session, failed: undefined }
  yield* begin(place)
  while (true) {
    const line = yield* lines.next("> ")
    if (Option.isNone(line)) break
    const text = line.value.trim()
    if (text === "") continue
    if (!text.startsWith("/")) yield* ask(place, text)
    else if (text.startsWith("//")) yield* ask(place, text.slice(1))
    else if (isEnd(text)) break
    else yield* command(place, text)
  }
  yield* unlessFailed(place)
})

/** Where a chat stands. */
interface Place {
  readonly screen: ScreenShape
  readonly setting: Answer.Setting
  readonly isTerminal: boolean
  /** Whether a person is asked before a call that may change something. */
  readonly asks: boolean
  session: string
  /** The session of the last message, when that failed: another session entered since has answered nothing yet. */
  failed: string | undefined
}

const note = ({ screen, setting }: Place, text: string): void =>
  screen.progress(`${paint(text, "quiet", setting.look)}\n`)

// ---------------------------------------------------------------- messages

const ask = Effect.fnUntraced(function* (place: Place, text: string) {
  const { session, setting } = place
  const history = yield* Session.history(session)
  const runId = Session.runIdOf(session, (yield* Session.size(session)) + 1)
  const answer = Kernel.stream(setting.agent, text, { runId, history })
  yield* settle(place, yield* Answer.follow(setting, runId, answer))
  yield* unlessFailed(place)
})

/** Goes on with what the last life of the session left open. */
const begin = Effect.fnUntraced(function* (place: Place) {
  const { session, setting } = place
  const before = yield* Session.last(session)
  const count = yield* Session.size(session)
  const soFar = count === 0 ? "" : `, ${Text.count(count, "message")} so far`
  note(place, `session ${session}${soFar}; /help tells what can be typed`)
  if (before === undefined || before.status.type === "completed") return
  const question = (yield* Session.exchanges(session, 1))[0]?.asked ?? ""
  note(place, `going on with: ${Text.excerpt(question, setting.look.columns - 20)}`)
  yield* settle(place, yield* Answer.takeUp(setting, before.runId))
})

/** Keeps how a message ended; one that waits for the person is the last. */
const settle = (place: Place, ending: Answer.Ending): Effect.Effect<void, CommandFailed> => {
  place.failed = ending === "failed" ? place.session : undefined
  return ending === "waiting"
    ? Effect.fail(new CommandFailed({ code: Codes.paused, reason: `the session ${place.session} waits for you` }))
    : Effect.void
}

/** A person tries again, or asks something else: a pipe knows neither. */
const unlessFailed = ({ failed, isTerminal }: Place): Effect.Effect<void, CommandFailed> =>
  failed !== undefined && !isTerminal
    ? Effect.fail(new CommandFailed({ code: Codes.failed, reason: `the last answer of the session ${failed} failed` }))
    : Effect.void

// ---------------------------------------------------------------- commands

/** Does what a line that begins with a slash says. */
const command = Effect.fnUntraced(function* (place: Place, line: string) {
  const [word = "", name] = line.slice(1).trim().split(/\s+/)
  switch (word) {
    case "help":
      place.screen.progress(help)
      break
    case "history":
      yield* history(place)
      break
    case "skills":
      yield* skills(place)
      break
    case "retry":
      yield* retry(place)
      break
    case "new":
      yield* enter(place, name ?? (yield* Session.freeName(place.session)))
      break
    case "sessions":
      yield* sessions(place)
      break
    case "session":
      if (name === undefined) note(place, place.session)
      else yield* enter(place, name)
      break
    default:
      note(place, `there is no /${Text.excerpt(word, 40)}; /help tells what there is`)
  }
})

const help = `/history        what was said, the last 50 messages of it
/skills         what the model may call
/retry          go on with an answer that was stopped or failed
/new [name]     another session
/sessions       all sessions of the store
/session NAME   go to a session
/exit           end; Ctrl-D does it too
//text          a message that begins with a slash
Ctrl-C stops the answer that is being given.
`

const history = Effect.fnUntraced(function* (place: Place) {
  const { screen, session, setting } = place
  const markdown = Markdown.make(setting.look.colors)
  const exchanges = yield* Session.exchanges(session, 50)
  if (exchanges.length === 0) note(place, "nothing was said yet")
  for (const { answered, asked, status } of exchanges) {
    screen.out(`${paint("you", "title", setting.look)}  ${Text.paragraph(asked)}`)
    screen.out(answered === undefined ? `(${status})\n` : markdown.push(answered) + markdown.end())
  }
})

const skills = Effect.fnUntraced(function* (place: Place) {
  const { agent, look } = place.setting
  const listed = Agents.skillNames(agent) ?? []
  const all = yield* (yield* SkillRegistry).all
  const its = listed === "all" ? all : all.filter(({ name }) => listed.includes(name))
  if (its.length === 0) return note(place, "there are no skills")
  for (const { description, effects, name } of its) {
    const asks = effects === "write" && place.asks ? ", asks before it runs" : ""
    const line = `${Text.excerpt(name, 40)} (${effects}${asks})  ${Text.excerpt(description, look.columns)}\n`
    place.screen.progress(line)
  }
})

const retry = Effect.fnUntraced(function* (place: Place) {
  const before = yield* Session.last(place.session)
  if (before === undefined || before.status.type === "completed") return note(place, "there is nothing to go on with")
  yield* settle(place, yield* Answer.takeUp(place.setting, before.runId))
  yield* unlessFailed(place)
})

const enter = Effect.fnUntraced(function* (place: Place, name: string) {
  if (!Session.isName(name)) return note(place, Session.nameRule)
  place.session = name
  yield* begin(place)
})

const sessions = Effect.fnUntraced(function* ({ screen, session }: Place) {
  for (const known of yield* Session.names) screen.progress(`${known === session ? "*" : " "} ${known}\n`)
})
