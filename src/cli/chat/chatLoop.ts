/**
 * Reads the lines of a chat: messages, and commands that begin with a slash.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Agent } from "../../Agent.ts"
import * as Agents from "../../Agent.ts"
import * as ChatHistory from "../../ChatHistory.ts"
import * as Kernel from "../../Kernel.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import * as WorkspaceHistory from "../../workspace/WorkspaceHistory.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import { localCaller } from "../localCaller.ts"
import type { ChatFlags } from "../commands/chatFlags.ts"
import { drawingOfScreen } from "../answerDrawing.ts"
import { Codes, CommandFailed, failed } from "../exit.ts"
import { Screen, type Shape } from "../screen.ts"
import * as Settings from "../settings.ts"
import { whole } from "../plainDrawing.ts"
import * as Text from "../terminalText.ts"
import * as Answer from "./answerMessage.ts"
import { help } from "./chatCommands.ts"
import * as Session from "./chatSession.ts"
import { LineReader } from "./lineReader.ts"
import * as ResultMedia from "./resultMedia.ts"
import { restoredText } from "../workspace/workText.ts"
import type { WorkRules } from "../workspace/openWorkspace.ts"

interface Chat {
  readonly screen: Shape
  readonly setting: Answer.Setting
  readonly isTerminal: boolean
  readonly settings: Settings.Settings
  session: string
  /** The session of the last message, if the message failed. */
  failedIn: string | undefined
}

/** Chats until the input ends. Without a terminal, stops at a message that fails. */
export const chatLoop = Effect.fnUntraced(function* (
  agent: Agent<unknown>,
  { color, session }: Pick<ChatFlags, "color" | "session">,
  settings: Settings.Settings,
  rules?: WorkRules
) {
  const screen = yield* Screen
  const reader = yield* LineReader
  const look = { columns: screen.columns, colors: color ?? screen.colors }
  const drawing = yield* drawingOfScreen(color)
  const showMedia = reader.isTerminal ? yield* ResultMedia.make(look) : undefined
  const setting: Answer.Setting = { agent, look, drawing, showMedia, rules, always: new Set() }
  const chat: Chat = { screen, setting, settings, isTerminal: reader.isTerminal, session, failedIn: undefined }
  yield* enter(chat, session)
  while (true) {
    const line = yield* reader.read("> ")
    if (Option.isNone(line) || Session.isExit(line.value)) break
    const text = line.value.trim()
    if (text === "") continue
    if (!text.startsWith("/")) yield* ask(chat, text)
    else if (text.startsWith("//")) yield* ask(chat, text.slice(1))
    else yield* command(chat, text)
  }
  yield* stopIfFailed(chat)
})

const note = ({ screen, setting }: Chat, text: string): void =>
  screen.progress(`${Text.paint(text, "quiet", setting.look)}\n`)

const ask = Effect.fnUntraced(function* (chat: Chat, text: string) {
  const { session, setting } = chat
  const before = yield* Session.last(session)
  const runId = Session.runIdOf(session, (yield* Session.size(session)) + 1)
  const history = before === undefined ? [] : ChatHistory.ofState(before)
  const context = Settings.contextOf(chat.settings)
  const events = Kernel.stream(setting.agent, text, { runId, history, context, caller: localCaller })
  yield* settle(chat, yield* Answer.follow(setting, runId, events))
  yield* stopIfFailed(chat)
})

const resume = Effect.fnUntraced(function* (chat: Chat, runId: string) {
  yield* settle(chat, yield* Answer.resume(chat.setting, runId))
})

const settle = (chat: Chat, ending: Answer.Ending): Effect.Effect<void, CommandFailed> => {
  chat.failedIn = ending === "failed" ? chat.session : undefined
  return ending === "waiting"
    ? Effect.fail(new CommandFailed({ code: Codes.paused, reason: `the session ${chat.session} waits for you` }))
    : Effect.void
}

/** Fails for a script, which would otherwise continue without the failed message. A person may try again. */
const stopIfFailed = ({ failedIn, isTerminal }: Chat): Effect.Effect<void, CommandFailed> =>
  failedIn === undefined || isTerminal
    ? Effect.void
    : Effect.fail(failed(`the last answer of the session ${failedIn} failed`))

/** Enters a session, and continues its last message if that has no answer. */
const enter = Effect.fnUntraced(function* (chat: Chat, session: string) {
  if (!Session.isName(session)) return note(chat, Session.nameRule)
  chat.session = session
  const count = yield* Session.size(session)
  const messages = count === 0 ? "" : `, ${Text.count(count, "message")} so far`
  const mode = chat.setting.rules === undefined ? "" : `, ${chat.setting.rules.mode} mode`
  note(chat, `session ${session}${messages}${mode}; /help lists the commands`)
  const last = yield* Session.last(session)
  if (last === undefined || last.status.type === "completed") return
  note(chat, `continuing: ${Text.excerpt(Session.exchangeOf(last).question, chat.setting.look.columns - 20)}`)
  yield* resume(chat, last.runId)
})

const command = Effect.fnUntraced(function* (chat: Chat, line: string) {
  const [word = "", name] = line.slice(1).trim().split(/\s+/)
  switch (word) {
    case "help":
      return chat.screen.progress(help)
    case "history":
      return yield* history(chat)
    case "skills":
      return yield* skills(chat)
    case "retry":
      return yield* retry(chat)
    case "plan":
    case "work":
      return yield* enterMode(chat, word)
    case "undo":
      return yield* undo(chat)
    case "new":
      return yield* enter(chat, name ?? (yield* Session.freeName(chat.session)))
    case "sessions":
      for (const known of yield* Session.names) {
        chat.screen.progress(`${known === chat.session ? "*" : " "} ${known}\n`)
      }
      return
    case "session":
      return name === undefined ? note(chat, chat.session) : yield* enter(chat, name)
    default:
      return note(chat, `there is no /${Text.excerpt(word, 40)}; /help lists the commands`)
  }
})

const history = Effect.fnUntraced(function* (chat: Chat) {
  const { screen, session, setting } = chat
  const exchanges = yield* Session.exchanges(session, 50)
  if (exchanges.length === 0) note(chat, "no messages yet")
  for (const { answer, question, status } of exchanges) {
    screen.out(`${Text.paint("you", "title", setting.look)}  ${Text.paragraph(question)}`)
    const missing = status === "running" ? "no answer yet" : status
    screen.out(answer === undefined ? `(${missing})\n` : whole(setting.drawing, answer.trimEnd()))
  }
})

const skills = Effect.fnUntraced(function* (chat: Chat) {
  const { agent, look } = chat.setting
  const names = Agents.skillNames(agent) ?? []
  const all = yield* (yield* SkillRegistry).all
  const offered = names === "all" ? all : all.filter(({ name }) => names.includes(name))
  if (offered.length === 0) return note(chat, "there are no skills")
  for (const { description, effects, name } of offered) {
    const asks = effects === "write" && chat.settings.yes !== true ? ", asks before it runs" : ""
    chat.screen.progress(`${Text.excerpt(name, 40)} (${effects}${asks})  ${Text.excerpt(description, look.columns)}\n`)
  }
})

const noWorkspace = "there is no workspace; start the chat with --workspace FOLDER"

/** Changes the mode. Work mode after a plan carries it out. */
const enterMode = Effect.fnUntraced(function* (chat: Chat, mode: WorkRules["mode"]) {
  const { rules } = chat.setting
  if (rules === undefined) return note(chat, noWorkspace)
  const accepts = rules.mode === "plan" && mode === "work" && (yield* Session.last(chat.session)) !== undefined
  rules.mode = mode
  note(chat, `${mode} mode`)
  if (accepts) yield* ask(chat, "The plan is accepted. Carry it out.")
})

const undo = Effect.fnUntraced(function* (chat: Chat) {
  const last = yield* Session.last(chat.session)
  const workspace = yield* Effect.serviceOption(Workspace)
  if (Option.isNone(workspace)) return note(chat, noWorkspace)
  if (last === undefined) return note(chat, "there is nothing to take back")
  const undone = yield* Effect.result(
    Effect.provideService(WorkspaceHistory.undo(last.runId), Workspace, workspace.value)
  )
  note(chat, Result.isFailure(undone) ? undone.failure.message : restoredText(undone.success))
})

const retry = Effect.fnUntraced(function* (chat: Chat) {
  const last = yield* Session.last(chat.session)
  if (last === undefined || last.status.type === "completed") return note(chat, "there is nothing to continue")
  yield* resume(chat, last.runId)
  yield* stopIfFailed(chat)
})
