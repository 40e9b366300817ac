/**
 * What a host may say of a run: what it begins with, and how it is run, resumed, forked and replayed.
 */

import type * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import type { Content } from "../../Content.ts"
import type { KernelError } from "../../KernelError.ts"
import type { Media } from "../../Media.ts"
import type { Message } from "../../Message.ts"
import type { ProviderShape } from "../../Provider.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { RunRecord } from "../../RunState.ts"
import type { JsonObject } from "../base/json.ts"
import type * as Replays from "../replay/replayRun.ts"
import type * as Resume from "./resume.ts"
import type { TaskReport } from "./run.ts"

/** What a run begins with: text, media, contents, or a list of them. */
export type Input = string | Media | Content | ReadonlyArray<string | Media | Content>

/** What holds for every run, new or resumed. */
export interface CommonOptions {
  /** The model's provider for this run, before the agent's and the layer's (BP-31). */
  readonly provider?: ProviderShape | undefined
  /** Names of skills the host allows at all (BP-65). Not stored: whoever resumes a run says it again. */
  readonly allowedSkills?: ReadonlyArray<string> | undefined
  /** Tell every part of a reply as `stream_part`, text too (DR-24). */
  readonly parts?: boolean | undefined
  /** Who runs: part of every record, and the owner of leases. */
  readonly workerId?: string | undefined
  /**
   * Asked before each step of the run and of its children. An error stops it
   * there, at its last commit: a `CancellationError` from the host that wants
   * to end, an `AgentCrashError` from a worker that is no longer the owner.
   */
  readonly stop?: (() => KernelError | undefined) | undefined
  /**
   * What is said to the run while it runs: each thing offered here is a message of the user from the next turn on,
   * and part of the journal. A run whose answer is ready goes on when something waits, as long as another turn is
   * allowed (`maxSteps`). A message leaves the queue once it is stored. One whose media cannot be stored stays there,
   * with what came after it, and the run fails with the reason: take it out, or resume. A queue is one run's. Where a
   * store fails and cannot say whether it has a message, the message stays, and may be said once more.
   */
  readonly steering?: Queue.Dequeue<Input, unknown> | undefined
  /** Called once per task of a workflow; what it does wrong changes nothing (BP-103). */
  readonly onTaskComplete?: ((task: TaskReport) => Effect.Effect<void>) | undefined
}

/** How a new run is begun. */
export interface RunOptions extends CommonOptions {
  readonly runId?: string | undefined
  /**
   * What was said before; not part of the result. Media over 64 KiB in it are stored with those of the input, as long as
   * there is room.
   */
  readonly history?: ReadonlyArray<Message> | undefined
  /** The host's own small JSON: skills read it, hooks change it (BP-153). */
  readonly context?: JsonObject | undefined
}

/** How a run is begun that is only stored. What is not stored is said by whoever takes it up. */
export interface SubmitOptions extends Pick<RunOptions, "runId" | "history" | "context" | "provider" | "workerId"> {}

/** How a stored run is taken up again (DR-15 to DR-19, DR-22). */
export interface ResumeOptions extends CommonOptions, Resume.Resume, AtRevision {}

/** How answers are recorded (DR-22). */
export interface AnswerOptions extends Pick<CommonOptions, "workerId">, AtRevision {}

interface AtRevision {
  /**
   * The revision the caller decided on, such as that of the head it showed. When the run itself is at another by now,
   * the call fails with `ConcurrentAppendError` and commits nothing (DR-6). Its tasks have revisions of their own.
   */
  readonly revision?: number | undefined
}

export type { Recovery } from "./resume.ts"

/** A recorded tree of runs: the id of its root, and its records when they are not in the store. */
export type Recording =
  | string
  | {
      readonly runId: string
      readonly records: ReadonlyArray<RunRecord>
      /** What was told live: with `stream_part` events of whole replies (`parts: true`) they come again piece by piece. */
      readonly events?: ReadonlyArray<RunEvent> | undefined
    }

/**
 * What a replay gave: the events in the order they were told, and where the run stands at the end of the recording.
 */
export interface Replay extends Replays.Replayed {}

/** How a fork differs from the run it comes from. */
export interface ForkOptions {
  /**
   * The last commit both have in common, the first at least. Default, also where the run has no such commit: its last
   * one.
   */
  readonly revision?: number | undefined
  /** The id of the fork. Default: one that is made up. */
  readonly runId?: string | undefined
  /** Changes a record on its way into the fork: an answer, a result, the context. What follows is run on what it says. */
  readonly edit?: ((record: RunRecord) => RunRecord) | undefined
}
