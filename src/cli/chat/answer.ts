/**
 * One message: asked, answered, and everything a person is asked in between.
 *
 * A run that waits for approvals, or that was cut off in the middle of a call,
 * goes on with what the person says. Nobody there to say it leaves the run as it
 * is: the next chat asks again.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Agent } from "../../Agent.ts"
import type { Call } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import * as Kernel from "../../Kernel.ts"
import type { KernelError, StoreError } from "../../KernelError.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Answer } from "../../RunState.ts"
import type { RunStore } from "../../RunStore.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import type { CommandFailed } from "../exit.ts"
import { type Options as Look, paint } from "../pen.ts"
import { Screen } from "../screen.ts"
import * as Text from "../terminalText.ts"
import { isEnd, Lines } from "./lines.ts"
import * as Session from "./chatSession.ts"
import * as Teller from "./teller.ts"

/** What holds for every message of a chat. */
export interface Setting {
  readonly agent: Agent<unknown>
  readonly look: Look
  /** Skills whose calls the person allowed for as long as the chat lasts. */
  readonly always: Set<string>
}

/** How it ended: with an answer, stopped by Ctrl-C, waiting for somebody, or not at all. */
export type Ending = "answered" | "stopped" | "waiting" | "failed"

type Needs = Kernel.Kernel | RunStore | SkillRegistry | Screen | Lines

/** Follows a run to its end. */
export const follow = Effect.fnUntraced(function* (
  setting: Setting,
  runId: string,
  first: Stream.Stream<RunEvent, KernelError, Kernel.Kernel>
): Effect.fn.Return<Ending, StoreError | CommandFailed, Needs> {
  const screen = yield* Screen
  const lines = yield* Lines
  const say = (text: string) => screen.progress(`${paint(text, "warning", setting.look)}\n`)
  let events = first
  while (true) {
    const ended = yield* Effect.raceFirst(listen(events, setting), Effect.as(lines.interrupted, stopped))
    switch (ended._tag) {
      case "Answered":
        return "answered"
      case "Stopped":
        say("stopped; /retry goes on with it, or just write on")
        return "stopped"
      case "Failed": {
        if (ended.error._tag !== "InFlightToolCalls") {
          say(`it failed: ${Text.excerpt(ended.error.message, 400)}; /retry tries again`)
          return "failed"
        }
        const replay = yield* askVerdicts(runId, setting)
        if (replay === undefined) return "waiting"
        events = Kernel.resumeStream(setting.agent, runId, { recover: replay })
        break
      }
      case "Paused": {
        const approvals = yield* askApprovals(runId, setting)
        if (approvals === undefined) return "waiting"
        if (approvals.length === 0) {
          say(`it waits: ${Text.excerpt(ended.reason, 400)}; /retry goes on`)
          return "waiting"
        }
        events = Kernel.resumeStream(setting.agent, runId, { answers: approvals })
        break
      }
    }
  }
})

/** The run as the store has it, taken up. */
export const takeUp = Effect.fnUntraced(function* (
  setting: Setting,
  runId: string
): Effect.fn.Return<Ending, StoreError | CommandFailed, Needs> {
  const questions = yield* Session.questions(runId)
  if (questions.length === 0) return yield* follow(setting, runId, Kernel.resumeStream(setting.agent, runId))
  const approvals = yield* askApprovals(runId, setting)
  return approvals === undefined
    ? "waiting"
    : yield* follow(setting, runId, Kernel.resumeStream(setting.agent, runId, { answers: approvals }))
})

// ---------------------------------------------------------------- listening

type Ended =
  | { readonly _tag: "Answered" | "Stopped" }
  | { readonly _tag: "Paused"; readonly reason: string }
  | { readonly _tag: "Failed"; readonly error: KernelError }

const stopped: Ended = { _tag: "Stopped" }

const listen = (
  events: Stream.Stream<RunEvent, KernelError, Kernel.Kernel>,
  { look }: Setting
): Effect.Effect<Ended, never, Kernel.Kernel | Screen> =>
  Screen.use((screen) => {
    const teller = Teller.make(screen, look)
    let ended: Ended = { _tag: "Answered" }
    return Stream.runForEachArray(events, (batch) =>
      Effect.sync(() => {
        for (const event of batch) {
          if (event.type === "paused" && event.depth === 0) ended = { _tag: "Paused", reason: event.reason }
        }
        teller.tell(batch)
      })
    ).pipe(
      Effect.ensuring(Effect.sync(teller.end)),
      Effect.matchEffect({
        onFailure: (error) => Effect.succeed<Ended>({ _tag: "Failed", error }),
        onSuccess: () => Effect.sync(() => ended)
      })
    )
  })

// ---------------------------------------------------------------- asking

/** What the person says about every open question; undefined when nobody is there. */
const askApprovals = Effect.fnUntraced(function* (
  runId: string,
  { always, look }: Setting
): Effect.fn.Return<ReadonlyArray<Answer> | undefined, StoreError | CommandFailed, RunStore | Screen | Lines> {
  const screen = yield* Screen
  const answers: Array<Answer> = []
  for (const { input, reason, callId, name } of yield* Session.questions(runId)) {
    if (always.has(name)) {
      answers.push({ callId, approved: true, by: "the person in the chat" })
      continue
    }
    screen.progress(asked(`${Text.flat(name)} wants to run: ${Text.excerpt(reason, 200)}`, input, look))
    const answer = yield* choose("allow it? [y]es, [n]o (a reason may follow), [a]lways: ", {
      y: "yes",
      n: "no",
      a: "always"
    })
    if (answer === undefined) return undefined
    if (answer.choice === "a") always.add(name)
    answers.push({
      callId,
      approved: answer.choice !== "n",
      by: "the person in the chat",
      ...(answer.rest === "" ? {} : { reason: answer.rest })
    })
  }
  return answers
})

/** What becomes of calls that were cut off; those that only read are simply made again. */
const askVerdicts = Effect.fnUntraced(function* (
  runId: string,
  { look }: Setting
): Effect.fn.Return<
  { readonly [callId: string]: Kernel.Recovery } | undefined,
  StoreError | CommandFailed,
  RunStore | SkillRegistry | Screen | Lines
> {
  const screen = yield* Screen
  const registry = yield* SkillRegistry
  const mayHaveActed = ({ name }: Call) =>
    Option.match(registry.find(name ?? ""), { onNone: () => true, onSome: ({ effects }) => effects === "write" })
  const verdicts = new Map<string, Kernel.Recovery>()
  for (const call of (yield* Session.inFlight(runId)).filter(mayHaveActed)) {
    const name = Text.flat(call.name ?? call.kind)
    screen.progress(asked(`${name} was cut off; whether it ran is not known`, call.input, look))
    const answer = yield* choose("[r]un it again, or [l]eave it: ", { r: "run", l: "leave" })
    if (answer === undefined) return undefined
    verdicts.set(call.callId, answer.choice === "r" ? "retry" : { resolve: { error: left } })
  }
  return Object.fromEntries(verdicts)
})

const left = Calls.error(
  "Interrupted",
  "This call was interrupted. Whether it ran is not known. It was not made again."
)

/** Everything a person needs to decide is shown whole: what is cut off could be what matters. */
const asked = (title: string, input: unknown, look: Look): string =>
  `${paint(`? ${title}`, "warning", look)}\n${Text.paragraph(JSON.stringify(input, null, 2) ?? "")}`

/** One of some words, or its first letter, and what is said after it. */
const choose = Effect.fnUntraced(function* <Choice extends string>(
  question: string,
  words: { readonly [Letter in Choice]: string }
): Effect.fn.Return<{ readonly choice: Choice; readonly rest: string } | undefined, CommandFailed, Screen | Lines> {
  const screen = yield* Screen
  const lines = yield* Lines
  screen.progress(`${question}\n`)
  while (true) {
    const line = yield* lines.answer("? ")
    if (Option.isNone(line) || isEnd(line.value)) return undefined
    const [word = "", ...rest] = line.value.trim().split(/\s+/)
    for (const letter in words) {
      if (word !== "" && words[letter].startsWith(word.toLowerCase())) return { choice: letter, rest: rest.join(" ") }
    }
    screen.progress(`${question}\n`)
  }
})
