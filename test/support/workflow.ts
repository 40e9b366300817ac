/**
 * What tests of workflows share: plans as a model writes them, and runs followed on virtual time.
 */
import { Effect, Fiber, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, type KernelError, type Provider, type RunEvent, RunStore } from "kernai"
import { Scenario } from "kernai/testing"
import { CurrentClaim, type RunClaim } from "../../src/internal/run/claim.ts"
import { of } from "./kernel.ts"

export interface TaskText {
  readonly id: string
  readonly input?: string
  readonly parallel?: boolean
  readonly depends_on?: ReadonlyArray<string>
}

/** A plan as a model writes it; a task's input is `do <id>` unless said. */
export const plan = (tasks: ReadonlyArray<TaskText | string>, strategy = "parallel"): string => {
  const written = tasks.map((task) => {
    const own = typeof task === "string" ? { id: task } : task
    return { input: `do ${own.id}`, ...own }
  })
  const json = JSON.stringify({ goal: "test", strategy, tasks: written })
  return `<block type="plan">${json.replaceAll("<", "\\u003c")}</block>`
}

/** A reply that takes some time. */
export const slow = (delay: number, text: string): Scenario.Line => ({ text, delay })

/** A reply that uses so many tokens. */
export const using = (tokens: number, text: string, delay = 0): Scenario.Line => ({
  text,
  delay,
  usage: { input: tokens, output: 0 }
})

export type Settings = Partial<Agent.Options<never>> & { readonly skills?: ReadonlyArray<string> }

export const agent = (options: Settings = {}) =>
  Agent.make({ instructions: "You test.", model: { id: "m", capabilities: ["text"] }, skills: "all", ...options })

/** How a followed run ended. */
export interface Followed {
  readonly events: ReadonlyArray<RunEvent.RunEvent>
  readonly error: KernelError.KernelError | undefined
  readonly text: string | undefined
}

/**
 * Follows a run to its end, however long it takes on the clock of the test. The clock stands
 * `still` for runs that wait for the real world, such as a digest of media.
 */
export const follow = <R>(
  events: Stream.Stream<RunEvent.RunEvent, KernelError.KernelError, R>,
  still = false
): Effect.Effect<Followed, never, R> =>
  Effect.gen(function* () {
    const heard: Array<RunEvent.RunEvent> = []
    const fiber = yield* Effect.forkChild(
      Effect.result(Stream.runForEach(events, (event) => Effect.sync(() => heard.push(event))))
    )
    if (!still) yield* TestClock.adjust("3 hours")
    const result = yield* Fiber.join(fiber)
    const end = heard.findLast((event) => event.type === "run_completed" && event.depth === 0)
    return {
      events: heard,
      error: result._tag === "Failure" ? result.failure : undefined,
      text: end?.type === "run_completed" ? end.result?.text : undefined
    }
  })

/** How a script is played. */
export interface Playing extends Kernel.RunOptions {
  readonly agent?: Settings
  readonly still?: boolean
}

/** Plays a script to its end, as the run `run`. */
export const play = (script: Scenario.Script, options: Playing = {}) => {
  const { agent: settings, still, ...rest } = options
  const provider = Scenario.scripted(script)
  return follow(Kernel.stream(agent(settings), "go", { runId: "run", provider, ...rest }), still)
}

/** Takes a stored run up again, with a script. A process whose claim says `stop` stops before its next step. */
export const takeUp = (
  script: Scenario.Script,
  options: Kernel.ResumeOptions & Pick<Playing, "agent"> & Partial<Pick<RunClaim, "stop">> = {}
) => {
  const { agent: settings, stop, ...rest } = options
  const claim = stop === undefined ? undefined : { stop }
  return follow(Kernel.resumeStream(agent(settings), "run", { provider: Scenario.scripted(script), ...rest })).pipe(
    Effect.provideService(CurrentClaim, claim)
  )
}

/** When each task ran, in milliseconds of the test clock. */
export const intervals = (
  events: ReadonlyArray<RunEvent.RunEvent>
): ReadonlyMap<string, readonly [from: number, to: number]> => {
  const began = new Map(of(events, "task_start").map((event) => [event.id, event.at]))
  const ends = [...of(events, "task_complete"), ...of(events, "task_error")]
  return new Map(ends.map((event) => [event.id, [began.get(event.id) ?? Number.NaN, event.at]]))
}

/** How many of these intervals share an instant, at most. */
export const overlap = (all: Iterable<readonly [from: number, to: number]>): number => {
  const list = Array.from(all)
  return Math.max(0, ...list.map(([at]) => list.filter(([from, to]) => from <= at && at < to).length))
}

/** The texts a model was given in its last request of one run: what it was told. */
export const told = (events: ReadonlyArray<RunEvent.RunEvent>, runId = "run"): string => {
  const sent = of(events, "messages_sent").findLast((event) => event.runId === runId)
  const texts = sent?.messages.slice(1).flatMap((message) => message.content) ?? []
  return texts.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n")
}

/** Whether a model call is one of this task. */
export const isTask = (request: Provider.Request, id: string): boolean => {
  const first = request.messages.find((message) => message.role === "user")?.content[0]
  return first?.type === "text" && first.text.endsWith(`do ${id}`)
}

/** The stored state of a run. */
export const stored = (runId: string) =>
  RunStore.RunStore.use((store) => Effect.map(store.load(runId), Option.getOrThrow))
