/**
 * The resources that all callers of a server share: its agents, its stores, its worker and its places for followers.
 */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Agents from "../../Agent.ts"
import { Kernel } from "../../Kernel.ts"
import { AgentNotFoundError, type ConfigInvalid } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import { MediaStore, type MediaStoreShape } from "../../MediaStore.ts"
import type { SubmitOptions } from "../../RunOptions.ts"
import { RunStore, type RunStoreShape } from "../../RunStore.ts"
import * as RunWorker from "../../RunWorker.ts"
import { recheck } from "../../store-kit/Follow.ts"
import { Unavailable } from "../HttpProblem.ts"
import type { CallerLimits, Given, Options } from "../ServedRuns.ts"
import type { Input, SubmitError } from "../../Kernel.ts"
import * as FetchedMedia from "./fetchedMedia.ts"
import type { FetchMedia } from "./fetchedMedia.ts"
import { places, type Places } from "./places.ts"
import { type Uploads, uploads } from "./uploads.ts"

/** The resources that all callers share. */
export interface ServerResources {
  readonly agents: ReadonlyMap<string, RunWorker.Runnable<unknown>>
  readonly store: RunStoreShape
  readonly media: MediaStoreShape
  readonly limits: CallerLimits
  readonly context: Options["context"]
  readonly maySee: Options["maySee"]
  readonly mayAnswer: Options["mayAnswer"]
  readonly places: Places
  readonly uploads: Uploads
  /** Fetches the media of an input, if the server does. */
  readonly fetchMedia: FetchMedia
  /** Stores a new run of an agent. */
  readonly submit: (
    agent: string,
    input: Input,
    options: Pick<SubmitOptions, "runId" | "history" | "caller"> & { readonly context: unknown }
  ) => Effect.Effect<string, SubmitError | AgentNotFoundError>
  /** Returns what followers fail with once the server has closed. */
  readonly closed: () => Unavailable | undefined
  /** Ends the streams of all followers, so that they connect again. */
  readonly close: Effect.Effect<void>
  /** Lets the worker of this process claim a run now, if there is one. */
  readonly take: (runId: string) => Effect.Effect<void>
}

/** Creates the resources of a server, with its worker. */
export const make = Effect.fnUntraced(function* <A extends RunWorker.Runnable<unknown>, R>(
  options: Given<A, R>
): Effect.fn.Return<
  ServerResources,
  ConfigInvalid,
  Kernel | RunStore | MediaStore | RunWorker.Services<A> | R | Scope.Scope
> {
  const { worker = {} } = options
  const agents = Agents.byName<RunWorker.Runnable<RunWorker.Services<A> | R>>(options.agents)
  const kernel = yield* Kernel
  const media = yield* MediaStore
  const services = yield* Effect.context<RunWorker.Services<A> | R>()
  const limits = { ...defaults, ...options.limits }
  const scope = yield* Effect.scope
  const running =
    worker === false ? undefined : yield* RunWorker.start<A, R>({ concurrency: 64, ...worker, agents: options.agents })
  const store = yield* RunStore
  let closed: Unavailable | undefined
  const close = Effect.sync(() => {
    closed = new Unavailable({ detail: "the server is closing: connect again" })
    recheck(store)
  })
  // Before the worker waits for its runs.
  yield* Effect.addFinalizer(() => close)
  return {
    agents,
    closed: () => closed,
    close,
    store,
    media,
    limits,
    context: options.context,
    maySee: options.maySee,
    mayAnswer: options.mayAnswer,
    places: places(limits),
    uploads: yield* uploads(media, limits),
    fetchMedia: yield* fetching(options.fetchMedia),
    submit: (name, input, given) => {
      const agent = agents.get(name)
      if (agent === undefined) return Effect.fail(new AgentNotFoundError({ agentId: name }))
      return Effect.provideContext(kernel.submit(agent, input, given), services)
    },
    // A client does not wait for the claim, since its run is stored.
    take: (runId) => (running === undefined ? Effect.void : Effect.asVoid(Effect.forkIn(running.take(runId), scope)))
  }
})

const fetching = Effect.fnUntraced(function* (
  wanted: Options["fetchMedia"] = false
): Effect.fn.Return<FetchMedia, never, Scope.Scope> {
  if (wanted === false) return Effect.succeed
  const { fetchedBytes } = yield* Limits
  return yield* FetchedMedia.make(wanted === true ? [] : wanted.origins, fetchedBytes)
})

const defaults: CallerLimits = {
  followers: 32,
  connections: 10_000,
  bodyBytes: 4 * 1024 * 1024,
  uploadBytes: 64 * 1024 * 1024,
  receivedBytes: 32 * 1024 * 1024,
  uploadTime: "10 minutes"
}

/** Fails when the store does not respond. */
export const health = ({ store }: ServerResources): Effect.Effect<void, Unavailable> =>
  store.list({ limit: 1 }).pipe(
    Effect.timeout("5 seconds"),
    Effect.mapError(() => new Unavailable()),
    Effect.asVoid
  )
