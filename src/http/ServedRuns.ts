/**
 * The runs that a server offers to its callers.
 *
 * All protocols of the HTTP door share this service: they decode requests into its operations, and encode the events it
 * emits. Started and answered runs are claimed at once by a `RunWorker` in this process, or by workers elsewhere. A run
 * belongs to the caller who started it.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { JsonObject } from "../kit/json.ts"
import type { Kernel } from "../Kernel.ts"
import type { ConfigInvalid, KernelError } from "../KernelError.ts"
import type { Media } from "../Media.ts"
import type { MediaStore, MediaStoreShape, StoredMedia } from "../MediaStore.ts"
import type { RunEvent } from "../RunEvent.ts"
import type { FollowOptions } from "../RunOptions.ts"
import type { OpenQuestion, RunState } from "../RunState.ts"
import type { RunFilter, RunHead, RunStore, StatusWord } from "../RunStore.ts"
import type * as RunWorker from "../RunWorker.ts"
import type { Caller } from "./Access.ts"
import { asProblem, type HttpProblem, type Unavailable } from "./HttpProblem.ts"
import * as ServerResources from "./internal/serverResources.ts"
import * as OwnRuns from "./internal/ownRuns.ts"
import type { Position } from "./internal/position.ts"
import { ownerOf } from "./internal/runNames.ts"
import type * as Bodies from "./RunBodies.ts"

// ---------------------------------------------------------------- models

/**
 * Limits on callers.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallerLimits {
  /** Maximum streams that one caller may follow at once. Default: 32. */
  readonly followers: number
  /** Maximum streams that all callers may follow at once. Default: 10,000. */
  readonly connections: number
  /** Maximum bytes of one request body. A medium is limited by `Limits.fetchedBytes` instead. Default: 4 MiB. */
  readonly bodyBytes: number
  /**
   * Maximum bytes of media that one caller may upload for runs that have not started. Default: 64 MiB.
   */
  readonly uploadBytes: number
  /**
   * Maximum bytes of media that the server receives at once from all callers, of which one caller has at most half.
   * Further uploads wait. Default: 32 MiB.
   */
  readonly receivedBytes: number
  /**
   * How long uploaded media count for their caller if their run does not start. A media store in memory keeps them that
   * long, and the media of a run that was followed. Default: 10 minutes.
   */
  readonly uploadTime: Duration.Input
}

/**
 * Options of the served runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<R = never> {
  /** The agents that callers may run, by their names. */
  readonly agents: ReadonlyArray<RunWorker.Runnable<NoInfer<R>>>
  /**
   * Options of the worker in this process, or `false` to leave the runs to workers of other processes. Default: a
   * worker that runs 64 runs at once.
   */
  readonly worker?: Omit<RunWorker.Options<R>, "agents"> | false | undefined
  /**
   * Returns the encoded context of a new run from the context its caller sent. Default: runs have no context, and
   * requests with one are rejected.
   */
  readonly context?: ((caller: Caller, sent: JsonObject) => JsonObject) | undefined
  /**
   * Decides whether a caller may see a run that another caller started, by the head of its root run: its events, its
   * questions, its result and its media. Such a run is addressed by its whole id; lists hold a caller's own runs only.
   * Default: operators see every run, and others only their own.
   */
  readonly maySee?: ((caller: Caller, run: RunHead) => Effect.Effect<boolean>) | undefined
  /**
   * Decides whether a caller may answer a question, in addition to the policies of the run (`Policy.confirm`). Default:
   * a caller answers the questions of its own runs, and of others those for which a policy names who may answer.
   */
  readonly mayAnswer?: ((caller: Caller, question: OpenQuestion, run: RunHead) => Effect.Effect<boolean>) | undefined
  /**
   * Whether media that an input names by their URL are fetched and stored with the run: from public hosts, and from
   * these origins. They have at most `Limits.fetchedBytes` together. Default: their URL goes to the vendor of the model.
   */
  readonly fetchMedia?: boolean | { readonly origins: ReadonlyArray<string> } | undefined
  /** Limits on callers. Omitted ones keep their defaults. */
  readonly limits?: Partial<CallerLimits> | undefined
}

/**
 * Options with agents that may need different services.
 *
 * @category models
 * @since 0.1.0
 */
export type Given<A extends RunWorker.Runnable<unknown>, R> = Options<RunWorker.Services<A> | R> & {
  readonly agents: ReadonlyArray<A>
}

/**
 * Options of a follower. `position` is the id of the last event received, from which the stream continues even in the
 * middle of a reply.
 *
 * @category models
 * @since 0.1.0
 */
export interface FollowAt extends Pick<FollowOptions, "until"> {
  readonly position?: Position | undefined
}

/**
 * Selects runs of the caller, the newest first.
 *
 * @category models
 * @since 0.1.0
 */
export interface Selection extends Omit<Bodies.ListQuery, "status"> {
  readonly status?: StatusWord | ReadonlyArray<StatusWord> | undefined
  /**
   * Only runs without a parent whose names begin with this text. The name is the part of the id that the caller chose.
   */
  readonly prefix?: string | undefined
}

/**
 * The runs of one caller. Runs of other callers are not found.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallerRuns {
  readonly caller: Caller
  /** Whether new runs accept a context from their caller. */
  readonly takesContext: boolean
  /** Starts a run, and returns its id. */
  readonly start: (request: Bodies.Start) => Effect.Effect<string, HttpProblem>
  /** Returns the whole id of a run from its name, the part that the caller chose. */
  readonly idOf: (name: string) => string
  readonly head: (runId: string) => Effect.Effect<RunHead, HttpProblem>
  /** Returns the head of a run, without parts that the caller may not see. */
  readonly summary: (runId: string) => Effect.Effect<Bodies.Head, HttpProblem>
  readonly state: (runId: string) => Effect.Effect<RunState, HttpProblem>
  readonly list: (query: Selection) => Effect.Effect<Bodies.RunList, HttpProblem>
  /** Emits the events of a run that the caller may see, like `Kernel.follow`. */
  readonly follow: (runId: string, options?: FollowAt) => Stream.Stream<RunEvent, HttpProblem>
  /** Takes a place among the followers of the caller until the scope closes. */
  readonly place: Effect.Effect<void, HttpProblem, Scope.Scope>
  readonly questions: (runId: string) => Effect.Effect<ReadonlyArray<OpenQuestion>, HttpProblem>
  /** Records decisions in the caller's name, and continues the run. */
  readonly answer: (runId: string, answers: Bodies.Answers) => Effect.Effect<void, HttpProblem>
  /** Cancels a run, and returns what was ended. */
  readonly cancel: (runId: string, reason?: string) => Effect.Effect<Bodies.Cancelled, HttpProblem>
  /**
   * Offers a run to workers again that failed, got no answer, was given up or was paused by a hook. The caller must be an
   * operator.
   */
  readonly retry: (runId: string, revision?: number) => Effect.Effect<void, HttpProblem>
  /**
   * Runs an operation on the runs of all callers, such as those of `Operations` and `Schedules`. The caller must be an
   * operator.
   */
  readonly operate: <A, E extends KernelError>(
    operation: Effect.Effect<A, E, RunStore | MediaStore>,
    id?: string
  ) => Effect.Effect<A, HttpProblem>
  readonly result: (runId: string) => Effect.Effect<Bodies.Result, HttpProblem>
  /**
   * Receives and stores a medium for a run, which may start later. Waits while the server receives too many bytes; a
   * medium of unknown length counts as the largest one.
   */
  readonly putMedia: (
    runId: string,
    length: number | undefined,
    media: Effect.Effect<Media, HttpProblem>
  ) => Effect.Effect<StoredMedia, HttpProblem>
  /** Opens the media of a root run of the caller. */
  readonly mediaOf: (rootRunId: string) => Effect.Effect<MediaStoreShape, HttpProblem, Scope.Scope>
  readonly getMedia: (
    runId: string,
    id: string
  ) => Effect.Effect<{ readonly media: StoredMedia; readonly bytes: Uint8Array }, HttpProblem>
}

/**
 * Serves runs.
 *
 * @category services
 * @since 0.1.0
 */
export class ServedRuns extends Context.Service<
  ServedRuns,
  {
    readonly agents: ReadonlyArray<RunWorker.Runnable<unknown>>
    readonly limits: CallerLimits
    /** Returns the runs of a caller. */
    readonly of: (caller: Caller) => CallerRuns
    /** Returns the runs of the caller who started a run, for work of the server that no request asks for. */
    readonly ownerOf: (run: RunHead) => CallerRuns
    /** Returns the runs of all callers that pass a filter. */
    readonly heads: (filter: RunFilter) => Effect.Effect<ReadonlyArray<RunHead>, HttpProblem>
    /** Fails when the store does not respond. */
    readonly health: Effect.Effect<void, Unavailable>
    /** Ends all streams with the problem `Unavailable`, so that their clients connect again. */
    readonly close: Effect.Effect<void>
  }
>()("kernai/http/ServedRuns") {}

// ---------------------------------------------------------------- layers

/**
 * Serves the runs of agents, and runs them for the lifetime of the layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <A extends RunWorker.Runnable<unknown>, R = never>(
  options: Given<A, R>
): Layer.Layer<ServedRuns, ConfigInvalid, Kernel | RunStore | MediaStore | RunWorker.Services<A> | R> =>
  Layer.effect(
    ServedRuns,
    Effect.map(ServerResources.make(options), (resources) => ({
      agents: options.agents,
      limits: resources.limits,
      of: (caller) => OwnRuns.make(resources, caller),
      ownerOf: (run) => OwnRuns.make(resources, ownerOf(run)),
      heads: (filter) => asProblem("of all callers")(resources.store.list(filter)),
      health: ServerResources.health(resources),
      close: resources.close
    }))
  )
