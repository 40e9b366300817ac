/**
 * Follows a run to its end and shows it, to people or to programs.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { jsonObject, plain } from "../kit/json.ts"
import { type KernelError, RunCancelled } from "../KernelError.ts"
import type { RunEvent } from "../RunEvent.ts"
import type { RunResult } from "../RunState.ts"
import { RunStore } from "../RunStore.ts"
import { waitReason } from "../studio/FailureCause.ts"
import { drawingOfScreen } from "./answerDrawing.ts"
import { asFailure, Codes, CommandFailed, failed } from "./exit.ts"
import { whole } from "./plainDrawing.ts"
import { RunLines } from "./runLines.ts"
import { Screen, type Shape } from "./screen.ts"
import { sourceLines } from "./sourceLines.ts"
import { command } from "./storeFlag.ts"
import * as Text from "./terminalText.ts"

/** The output: progress and the answer, only the answer, one JSON object, or a JSON line for every event. */
export type Form = "text" | "quiet" | "json" | "events"

export interface Options {
  readonly form: Form
  /** Default: the setting of the screen. */
  readonly color?: boolean | undefined
  /** The line above the run. */
  readonly title: string
  readonly question?: string | undefined
  /** The store of the run, if it has one. */
  readonly store?: string | undefined
  /** Returns the problem of an answer, if any. */
  readonly check?: (result: RunResult<unknown>) => string | undefined
}

/** Runs an agent, shows its events, and returns the result. */
export const follow = <R>(
  events: Stream.Stream<RunEvent, KernelError, R>,
  options: Options
): Effect.Effect<RunResult<unknown>, CommandFailed, R | RunStore | Screen> =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const { form } = options
    const look = { columns: screen.columns, colors: options.color ?? screen.colors }
    const started = yield* Clock.currentTimeMillis
    if (form === "text") screen.progress(heading(options, look))
    const result = yield* watch(events, viewOf(options, screen, look), options)
    const problem = options.check?.(result)
    if (problem !== undefined) return yield* failed(problem)
    const took = (yield* Clock.currentTimeMillis) - started
    if (form === "text") screen.progress(summary(result, took, look))
    if (form === "json") screen.out(`${Text.json({ ok: true, ...jsonObject(plain(result)) })}\n`)
    if (form === "text" || form === "quiet") {
      screen.out(whole(yield* drawingOfScreen(options.color), result.text.trim()))
    }
    const sources = sourceLines(result.messages, look)
    if (form === "text" && sources !== "") screen.progress(sources)
    return result
  })

interface View {
  readonly show: (event: RunEvent) => void
  readonly end: () => void
}

const viewOf = ({ form, store }: Options, screen: Shape, look: Text.Look): View => {
  if (form === "events") return { show: (event) => screen.out(`${Text.json(plain(event))}\n`), end: () => {} }
  if (form !== "text") return { show: () => {}, end: () => {} }
  const lines = new RunLines(screen.progress, look)
  return {
    show: (event) => {
      if (store !== undefined && event.type === "run_started" && event.depth === 0) {
        screen.progress(`${Text.paint("run", "title", look)}       ${Text.flat(event.runId)}\n`)
      }
      lines.show(event)
    },
    end: () => lines.end()
  }
}

const watch = <R>(events: Stream.Stream<RunEvent, KernelError, R>, view: View, { form, store }: Options) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    let end: RunEvent | undefined
    let started: string | undefined
    let followed: string | undefined
    yield* Stream.runForEach(events, (event) =>
      Effect.sync(() => {
        if (event.depth === 0) followed = event.runId
        if (event.depth === 0 && event.type === "run_started") started = event.runId
        if (event.depth === 0 && ends.has(event.type)) end = event
        view.show(event)
      })
    ).pipe(
      Effect.ensuring(Effect.sync(view.end)),
      Effect.catch((error) =>
        Effect.flatMap(resumeHint(started, store), (hint) => Effect.fail(withHint(asFailure(error), hint)))
      ),
      Effect.onInterrupt(() => {
        if (followed === undefined || store === undefined) return Effect.void
        const hinted = Effect.map(resumeHint(followed, store), (hint) => {
          if (form === "text") screen.progress(`continue it: ${hint}\n`)
        })
        return Effect.andThen(Effect.ignore(markInterrupted(followed)), hinted)
      })
    )
    if (end?.type === "run_completed" && end.result !== undefined) return end.result
    if (end?.type === "paused") return yield* waiting(end, store)
    if (end?.type === "run_cancelled") return yield* asFailure(new RunCancelled(end))
    return yield* failed("the run ended without an answer")
  })

const ends: ReadonlySet<RunEvent["type"]> = new Set<RunEvent["type"]>(["run_completed", "paused", "run_cancelled"])

/** Leaves an expired lease on a run that no process runs any more, so that its status is `interrupted`. */
const markInterrupted = Effect.fnUntraced(function* (runId: string) {
  const runs = yield* RunStore
  const head = Option.getOrUndefined(yield* runs.head(runId))
  if (head === undefined || head.lease !== undefined || head.status.type !== "running") return
  yield* runs.acquire(runId, { workerId: "cli", lease: "1 millis", seen: head })
})

/** Returns the command that continues a stored run that was started here. */
const resumeHint = (runId: string | undefined, store: string | undefined): Effect.Effect<string | undefined> =>
  runId === undefined || store === undefined ? Effect.undefined : command(["runs", "resume", runId], store)

const withHint = ({ code, reason, tag }: CommandFailed, hint: string | undefined): CommandFailed =>
  new CommandFailed({ code, reason, ...(tag === undefined ? {} : { tag }), ...(hint === undefined ? {} : { hint }) })

const waiting = Effect.fnUntraced(function* (
  event: Extract<RunEvent, { readonly type: "paused" }>,
  store: string | undefined
) {
  const { reason, runId } = event
  const verb = reason === "approval_required" || reason === "approval_not_run" ? "approve" : "resume"
  return yield* new CommandFailed({
    code: Codes.paused,
    reason: `the run ${runId} waits for a person: ${Text.excerpt(waitReason(event), 200)}`,
    tag: "RunPaused",
    ...(store === undefined ? {} : { hint: yield* command(["runs", verb, runId], store) })
  })
})

const heading = ({ question, title }: Options, look: Text.Look): string => {
  const first = `${Text.paint(Text.excerpt(title, look.columns), "quiet", look)}\n`
  if (question === undefined) return first
  return `${first}${Text.paint("question", "title", look)}  ${Text.excerpt(question, look.columns - 10)}\n`
}

const summary = (result: RunResult<unknown>, took: number, look: Text.Look): string => {
  const { costUsd, calls, turns, unreportedTurns, usage } = result
  const facts = [
    Text.count(turns, "turn"),
    Text.count(calls.length, "call"),
    Text.tokens(unreportedTurns === turns ? null : usage),
    ...Text.cost(costUsd),
    Text.duration(took)
  ]
  return `${Text.paint("answer", "title", look)}  ${Text.paint(facts.join(", "), "quiet", look)}\n\n`
}
