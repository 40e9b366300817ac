/**
 * The errors that each verb fails with: exactly what can occur there, under a name.
 */
import { Effect, type Exit, type Stream } from "effect"
import { Agent, Chat, Kernel, type KernelError, Middleware, PromptPipeline, RunStore, RunWorker } from "kernai"
import { Replay } from "kernai/testing"
import type { DriveError, EndError, MediaError } from "../src/internal/run/run.ts"
import type { AppendError } from "../src/store-kit/internal/storeGuard.ts"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined
type Tagged = { readonly _tag: string }
type Tags<E extends Tagged> = E["_tag"]
type Fails<F> = F extends (...args: never) => Effect.Effect<infer _A, infer E extends Tagged, infer _R>
  ? E["_tag"]
  : never
type FailsStream<F> = F extends (...args: never) => Stream.Stream<infer _A, infer E, infer _R> ? E : never

const agent = Agent.make({ instructions: "", model: "m" })

// ---------------------------------------------------------------- by verb

type NotStored =
  | "AgentConfigInvalid"
  | "InvalidModel"
  | "UnsupportedProvider"
  | "ProviderUnavailable"
  | "ProviderError"
  | "MediaConflict"
  | "LimitExceeded"
  | "RunExists"
  | "ConcurrentAppendError"
  | "StoreError"

type NoAnswer =
  | NotStored
  | "ContextWindowExceeded"
  | "TemplateError"
  | "SkillPackInvalid"
  | "ExtensionFailed"
  | "EmptyReplies"
  | "CutReplies"
  | "LoopDetected"
  | "ProgramFailed"
  | "ProgramChanged"
  | "ProgramImpure"
  | "MaxStepsReached"
  | "BudgetExhaustedError"
  | "DeadlineExceeded"
  | "RunPaused"
  | "RunFinished"
  | "RunCancelled"
  | "MiddlewareTermination"
  | "CancellationError"
  | "AgentCrashError"
  | "RunPoisoned"
  | "RunBusy"
  | "InFlightToolCalls"

type NotResumed =
  | NoAnswer
  | "RunNotFound"
  | "AgentMismatch"
  | "QuestionNotFound"
  | "AnswerRefused"
  | "RewindNotAllowed"
  | "OutputInvalid"

export const submitted = Kernel.submit(agent, "")
yes<Equal<Effect.Error<typeof submitted>, Kernel.SubmitError>>()
yes<Equal<Tags<Kernel.SubmitError>, NotStored | "QueueFull">>()

export const ran = Kernel.run(agent, "")
yes<Equal<Effect.Error<typeof ran>, Kernel.RunError>>()
yes<Equal<Tags<Kernel.RunError>, NoAnswer>>()
// A pause or a cancellation is the last event of a stream.
yes<Equal<Tags<Kernel.StreamError>, Exclude<NoAnswer, "RunPaused" | "RunCancelled">>>()
yes<Equal<FailsStream<typeof Kernel.stream>, Kernel.StreamError>>()

export const resumed = Kernel.resume(agent, "r")
yes<Equal<Effect.Error<typeof resumed>, Kernel.ResumeError>>()
yes<Equal<Tags<Kernel.ResumeError>, NotResumed>>()
yes<Equal<Tags<Kernel.ResumeStreamError>, Exclude<NotResumed, "RunPaused" | "RunCancelled">>>()
yes<Equal<FailsStream<typeof Kernel.resumeStream>, Kernel.ResumeStreamError>>()

yes<Equal<Fails<typeof Kernel.questions>, "RunNotFound" | "StoreError">>()
yes<
  Equal<
    Fails<typeof Kernel.answer>,
    | "QuestionNotFound"
    | "AnswerRefused"
    | "ConcurrentAppendError"
    | "RunBusy"
    | "RunCancelled"
    | "RunNotFound"
    | "StoreError"
  >
>()
yes<
  Equal<
    Fails<typeof Kernel.cancel>,
    "ConcurrentAppendError" | "NotRootRun" | "RunAlreadyCompleted" | "RunNotFound" | "StoreError"
  >
>()
yes<Equal<FailsStream<typeof Kernel.follow>, Kernel.FollowError>>()
yes<Equal<Tags<Kernel.FollowError>, "RunNotFound" | "StoreError">>()
yes<Equal<Fails<typeof Kernel.fork>, "RunNotFound" | "RunExists" | "ConcurrentAppendError" | "StoreError">>()

export const replayed = Replay.run(agent, "r")
yes<Equal<Effect.Error<typeof replayed>, Replay.ReplayError>>()
yes<Equal<Tags<Replay.ReplayError>, "ReplayDiverged" | "RunNotFound" | "AgentConfigInvalid" | "StoreError">>()

export const chatted = Chat.chat(agent, "")
yes<Equal<Effect.Error<typeof chatted>, Kernel.ResumeError>>()
yes<Equal<FailsStream<typeof Chat.chatStream>, Kernel.ResumeStreamError>>()

// The public union is the sum of the steps, and the error of a driver that gave the run up.
yes<
  Equal<
    Kernel.RunError,
    | KernelError.AgentConfigInvalid
    | KernelError.ModelError
    | MediaError
    | AppendError
    | DriveError
    | EndError
    | KernelError.RunPoisoned
  >
>()

// ---------------------------------------------------------------- handled one by one

export const retried = ran.pipe(
  Effect.catchTag("RunPaused", ({ runId }) => Effect.succeed(runId)),
  Effect.catchTag("DeadlineExceeded", ({ deadline, runId }) => Effect.as(Effect.log(deadline), runId)),
  // @ts-expect-error a new run asks nobody about an answer
  Effect.catchTag("QuestionNotFound", () => Effect.void)
)
export const paused = Effect.catchTag(ran, "RunPaused", () => Effect.void)
yes<Equal<Effect.Error<typeof paused>, Exclude<Kernel.RunError, KernelError.RunPaused>>>()
export const isRecoverable = (error: Kernel.RunError, is: typeof KernelError.isRecoverable) => is(error)

// ---------------------------------------------------------------- ports

// @ts-expect-error a claim on a run is given to its driver
export const stopped = Kernel.run(agent, "", { stop: (): KernelError.StopError | undefined => undefined })
yes<Equal<Tags<KernelError.StopError>, "CancellationError" | "AgentCrashError">>()

yes<
  Equal<
    Tags<KernelError.PromptError>,
    | "ContextWindowExceeded"
    | "TemplateError"
    | "SkillPackInvalid"
    | "ProviderError"
    | "LimitExceeded"
    | "StoreError"
    | "ExtensionFailed"
    | "MiddlewareTermination"
  >
>()
yes<Equal<Effect.Error<ReturnType<PromptPipeline.PromptPipelineShape["build"]>>, KernelError.PromptError>>()
yes<Equal<Tags<KernelError.ProgramError>, "ProgramFailed" | "ProgramChanged" | "ProgramImpure">>()
yes<
  Equal<
    Tags<KernelError.ModelCallError>,
    | "ProviderError"
    | Tags<KernelError.ProgramError>
    | "ExtensionFailed"
    | "MiddlewareTermination"
    | "BudgetExhaustedError"
  >
>()
yes<Equal<Stream.Error<Middleware.ModelStream>, KernelError.ModelCallError>>()
// A summary that fails is logged: it may fail with anything.
export const summarized = PromptPipeline.layer({ compaction: { summarize: () => Effect.fail("no summary") } })
yes<Equal<Effect.Error<ReturnType<PromptPipeline.Section>>, KernelError.PromptError>>()

export const worker = RunWorker.layer({
  agents: [agent],
  resume: ({ runId }) => Effect.as(RunStore.inFlight(runId), {}),
  onRun: (_head, exit) => {
    yes<Equal<typeof exit, Exit.Exit<unknown, Kernel.ResumeError | KernelError.ToolNotFound>>>()
    return Effect.void
  }
})
