/**
 * Answers one message, and asks the person the questions of the run. Without an answer the run keeps waiting, and the
 * next chat asks again.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Agent } from "../../Agent.ts"
import type { Call } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import * as Kernel from "../../Kernel.ts"
import { type KernelError, type StoreError, withVendorWords } from "../../KernelError.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Answer, GivenAnswer } from "../../RunState.ts"
import type { RunStore } from "../../RunStore.ts"
import type { JsonObject } from "../../kit/json.ts"
import type { Asking } from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import * as WorkspacePolicy from "../../workspace/WorkspacePolicy.ts"
import { localCaller } from "../localCaller.ts"
import type { CommandFailed } from "../exit.ts"
import type { Drawing } from "../plainDrawing.ts"
import { Screen } from "../screen.ts"
import * as Text from "../terminalText.ts"
import { AnswerView } from "./answerView.ts"
import * as Session from "./chatSession.ts"
import { LineReader } from "./lineReader.ts"
import type { ShowMedia } from "./resultMedia.ts"
import type { WorkRules } from "../workspace/openWorkspace.ts"

/** The settings that all messages of a chat share. */
export interface Setting {
  readonly agent: Agent<unknown>
  readonly look: Text.Look
  /** Draws the answers, one after the other. */
  readonly drawing: Drawing
  /** Shows the media of results. Without a terminal they are not shown. */
  readonly showMedia?: ShowMedia | undefined
  /** Skills that the person allowed for the rest of the chat. */
  readonly always: Set<string>
  /** What the agent may do in its workspace, if it has one. */
  readonly rules?: WorkRules | undefined
}

/** The end of a message: answered, stopped by Ctrl-C, waiting for the person, or failed. */
export type Ending = "answered" | "stopped" | "waiting" | "failed"

type Needs = Kernel.Kernel | RunStore | SkillRegistry | Screen | LineReader

/** Follows a run to its end. */
export const follow = Effect.fnUntraced(function* (
  setting: Setting,
  runId: string,
  first: Stream.Stream<RunEvent, KernelError, Kernel.Kernel>
): Effect.fn.Return<Ending, StoreError | CommandFailed, Needs> {
  const screen = yield* Screen
  const reader = yield* LineReader
  const warn = (text: string) => screen.progress(`${Text.paint(text, "warning", setting.look)}\n`)
  let events = first
  while (true) {
    const end = yield* Effect.raceFirst(watch(events, setting), Effect.as(reader.interrupted, stopped))
    switch (end._tag) {
      case "Answered":
        return "answered"
      case "Stopped":
        warn("stopped; continue it with /retry, or send another message")
        return "stopped"
      case "Failed": {
        if (end.error._tag !== "InFlightToolCalls") {
          warn(`failed: ${Text.excerpt(withVendorWords(end.error), 800)}; /retry tries again`)
          return "failed"
        }
        const recover = yield* askAboutCallsInFlight(runId, setting)
        if (recover === undefined) return "waiting"
        events = Kernel.resumeStream(setting.agent, runId, { recover })
        break
      }
      case "Paused": {
        const answers = yield* askQuestions(runId, setting)
        if (answers === undefined) return "waiting"
        if (answers.length === 0) {
          warn(`paused: ${Text.excerpt(end.reason, 400)}; continue with /retry`)
          return "waiting"
        }
        events = Kernel.resumeStream(setting.agent, runId, { answers, caller: localCaller })
        break
      }
    }
  }
})

/** Resumes the stored run of a message, and asks its open questions. */
export const resume = Effect.fnUntraced(function* (
  setting: Setting,
  runId: string
): Effect.fn.Return<Ending, StoreError | CommandFailed, Needs> {
  const answers = yield* askQuestions(runId, setting)
  if (answers === undefined) return "waiting"
  const options = answers.length === 0 ? {} : { answers, caller: localCaller }
  return yield* follow(setting, runId, Kernel.resumeStream(setting.agent, runId, options))
})

type End =
  | { readonly _tag: "Answered" | "Stopped" }
  | { readonly _tag: "Paused"; readonly reason: string }
  | { readonly _tag: "Failed"; readonly error: KernelError }

const stopped: End = { _tag: "Stopped" }

const watch = (
  events: Stream.Stream<RunEvent, KernelError, Kernel.Kernel>,
  { drawing, look, showMedia }: Setting
): Effect.Effect<End, never, Kernel.Kernel | Screen> =>
  Screen.use((screen) => {
    const view = new AnswerView(screen, look, drawing)
    let end: End = { _tag: "Answered" }
    return Stream.runForEach(events, (event) =>
      Effect.suspend(() => {
        if (event.type === "paused" && event.depth === 0) end = { _tag: "Paused", reason: event.reason }
        view.show(event)
        if (showMedia === undefined || event.type !== "skill_result") return Effect.void
        return Effect.forEach(event.media ?? [], (medium) => showMedia(event.rootRunId, medium), { discard: true })
      })
    ).pipe(
      Effect.ensuring(Effect.sync(() => view.end())),
      Effect.matchEffect({
        onFailure: (error) => Effect.succeed<End>({ _tag: "Failed", error }),
        onSuccess: () => Effect.sync(() => end)
      })
    )
  })

/** Asks about the waiting calls. Returns undefined without an answer. */
const askQuestions = Effect.fnUntraced(function* (runId: string, { always, look, rules }: Setting) {
  const answers: Array<GivenAnswer> = []
  for (const { asking, callId, input, name, reason } of yield* Session.questions(runId)) {
    if (asking !== undefined) {
      const reply = yield* askFor(asking, look)
      if (reply === undefined) return undefined
      answers.push({ callId, ...reply })
      continue
    }
    const title = `${Text.flat(name)} asks to run: ${Text.excerpt(reason, 200)}`
    const command = rules === undefined ? undefined : commandOf(name, input)
    const prefixes = command === undefined ? [] : WorkspacePolicy.prefixesOf(command)
    const isAllowed = command === undefined ? always.has(name) : WorkspacePolicy.isAllowed(rules?.allow ?? [], command)
    const choice = isAllowed
      ? { letter: "y", rest: "" }
      : yield* choose(title, command ?? input, ...allowQuestion(command, prefixes), look)
    if (choice === undefined) return undefined
    if (choice.letter === "a") {
      if (command === undefined) always.add(name)
      else rules?.allow.push(...prefixes)
    }
    const answer: Answer = { callId, approved: choice.letter !== "n" }
    answers.push(choice.rest === "" ? answer : { ...answer, reason: choice.rest })
  }
  return answers
})

/** Returns the command line of a call of the workspace. */
const commandOf = (name: string, input: unknown): string | undefined =>
  name === "shell" &&
  typeof input === "object" &&
  input !== null &&
  "command" in input &&
  typeof input.command === "string"
    ? input.command
    : undefined

/** Returns the question and the words that answer it. A command without a prefix cannot be allowed for always. */
const allowQuestion = (
  command: string | undefined,
  prefixes: ReadonlyArray<string>
): readonly [question: string, words: ReadonlyArray<string>] => {
  const question = "allow it? [y]es, [n]o (a reason may follow)"
  if (command !== undefined && prefixes.length === 0) return [question, ["yes", "no"]]
  const always = command === undefined ? "" : ` for ${prefixes.map(Text.flat).join(" and ")}`
  return [`${question}, [a]lways${always}`, ["yes", "no", "always"]]
}

/** Asks the question of a running call. Returns undefined without an answer. */
const askFor = Effect.fnUntraced(function* ({ form, message, output, url }: Asking, look: Text.Look) {
  if (output !== undefined) return yield* askForResult(message, output, look)
  const shown = form ?? url ?? ""
  const words = form === undefined ? "[y]es" : "[y]es, with the values as a JSON object behind it"
  while (true) {
    const choice = yield* choose(Text.excerpt(message, 800), shown, `${words}, [n]o, or [l]ater`, replyWords, look)
    if (choice === undefined) return undefined
    if (choice.letter !== "y") return { approved: false, dismissed: choice.letter === "l" }
    if (form === undefined || choice.rest === "") return { approved: true }
    const values = decodeValues(choice.rest)
    if (Option.isSome(values)) return { approved: true, values: values.value }
  }
})

/** Asks for the result of a call that somebody else runs. Returns undefined without an answer. */
const askForResult = Effect.fnUntraced(function* (message: string, schema: JsonObject, look: Text.Look) {
  const words = "[y]es, with the result as JSON behind it, [n]o, or [l]ater"
  while (true) {
    const choice = yield* choose(Text.excerpt(message, 800), schema, words, replyWords, look)
    if (choice === undefined) return undefined
    if (choice.letter !== "y") return { approved: false, dismissed: choice.letter === "l" }
    const output = decodeJson(choice.rest)
    if (Option.isSome(output)) return { output: output.value }
  }
})

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

const replyWords = ["yes", "no", "later"]

const decodeValues = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json)))

/** Asks about the calls that were cut off and may have changed something. Returns undefined without an answer. */
const askAboutCallsInFlight = Effect.fnUntraced(function* (runId: string, { look }: Setting) {
  const registry = yield* SkillRegistry
  const mayHaveActed = ({ name }: Call) =>
    Option.match(registry.find(name ?? ""), { onNone: () => true, onSome: ({ effects }) => effects === "write" })
  const recover = new Map<string, Kernel.Recovery>()
  for (const call of (yield* Session.inFlight(runId)).filter(mayHaveActed)) {
    const title = `${Text.flat(call.name ?? call.kind)} was cut off; it may have run`
    const choice = yield* choose(title, call.input, "[r]un it again, or [l]eave it", ["run", "leave"], look)
    if (choice === undefined) return undefined
    recover.set(call.callId, choice.letter === "r" ? "retry" : { resolve: { error: left } })
  }
  return Object.fromEntries(recover)
})

const left = Calls.error(
  "Interrupted",
  "This call was interrupted. Whether it ran is not known. It was not made again."
)

/** Shows a call in full and asks until the line starts with one of the words, or its first letter. */
const choose = Effect.fnUntraced(function* (
  title: string,
  input: unknown,
  question: string,
  words: ReadonlyArray<string>,
  look: Text.Look
) {
  const screen = yield* Screen
  const reader = yield* LineReader
  const shown = Text.paragraph(JSON.stringify(input, null, 2) ?? "")
  screen.progress(`${Text.paint(`? ${title}`, "warning", look)}\n${shown}`)
  while (true) {
    screen.progress(`${question}\n`)
    const line = yield* reader.ask("? ")
    if (Option.isNone(line) || Session.isExit(line.value)) return undefined
    const [first = "", ...rest] = line.value.trim().split(/\s+/)
    const word = words.find((word) => first !== "" && word.startsWith(first.toLowerCase()))
    if (word !== undefined) return { letter: word.charAt(0), rest: rest.join(" ") }
  }
})
