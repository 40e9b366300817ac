/**
 * Runs agents on many machines.
 *
 * `layer` makes a process a runner: it runs the runs whose shards it owns. `layerClient` makes it a client. Both
 * provide a `Kernel` and a `RunStore` that are used as usual: `Kernel.run`, `submit`, `stream`, `resume`, `answer`,
 * `cancel` and `follow` work on every process, wherever a run is executed.
 *
 * The store of runs is the only source of truth. The cluster assigns runs to runners, delivers messages, wakes runs,
 * and carries live events; losing all of its tables loses no run. Each append is accepted for one revision only, so two
 * runners that both believe they own a run never both advance it.
 *
 * @since 0.1.0
 */

import * as Entity from "effect/cluster/Entity"
import { MessageStorage } from "effect/cluster/MessageStorage"
import { Sharding } from "effect/cluster/Sharding"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { closedInTime } from "../kit/closedInTime.ts"
import { Kernel } from "../Kernel.ts"
import { RunStore } from "../RunStore.ts"
import * as RunDriver from "../RunDriver.ts"
import { make as makeKernel } from "./internal/clusterVerbs.ts"
import { driveHere, driveMessage, type Runner } from "./internal/driveMessage.ts"
import * as Elsewhere from "./internal/elsewhere.ts"
import { liveOf } from "./internal/liveOf.ts"
import * as Messages from "./internal/messenger.ts"
import { NodeLimits } from "./internal/nodeLimits.ts"
import * as OfferedRuns from "./internal/offeredRuns.ts"
import * as RunnerClaim from "./internal/runnerClaim.ts"
import * as UnsentRuns from "./internal/unsentRuns.ts"
import { RunEntity } from "./RunEntity.ts"
import { encodeLive } from "./internal/wire.ts"

// ---------------------------------------------------------------- models

/**
 * The options of a runner.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<R = never> extends Pick<
  RunDriver.Options<R>,
  "agents" | "workerId" | "partiesOf" | "share" | "retry" | "retries" | "resume" | "onRun"
> {
  /**
   * Time for a run to finish its step, with the calls it started, when the runner shuts down or loses its shard. Runs
   * that take longer are interrupted. Must be less than `lockExpiration`. Default: 3 seconds.
   */
  readonly drain?: Duration.Input | undefined
  /**
   * Interval of polling for stalled runs whose message was lost, and how long such a run must have been idle. Queued runs
   * are polled for every two seconds. Default: 20 seconds, twice the default `lockExpiration`.
   */
  readonly pollInterval?: Duration.Input | undefined
}

/** Options of agents that may need different services, and of a `resume` that may. */
type Given<A extends RunDriver.Runnable<unknown>, R> = Options<RunDriver.Services<A> | R> & {
  readonly agents: ReadonlyArray<A>
}

// ---------------------------------------------------------------- layers

/**
 * Makes this process a client of a cluster: runners run the runs that it starts, resumes or answers.
 *
 * Provide it with the usual kernel and store. It replaces both. Leaving `Kernel.run` or a stream does not stop the run;
 * `Kernel.cancel` does. Options that only the process of a run can use (`signal`, `steering`, `parts`, `address`,
 * `allowedSkills`, `onTaskComplete`, `hooks`, `middleware`, `maxSteps`) fail with `AgentConfigInvalid`.
 *
 * @example
 * const Client = ClusterKernel.layerClient.pipe(
 *   Layer.provide([KernelLive, ClusterNode.layerClient()]),
 *   Layer.provide(PgRunStore.layerSqlClient({ url }))
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export const layerClient: Layer.Layer<Kernel | RunStore, never, Kernel | RunStore | Sharding | MessageStorage> =
  Layer.fresh(
    Layer.effectContext(
      Effect.gen(function* () {
        const store = yield* RunStore
        const messenger = yield* Messages.make
        const forget = OfferedRuns.forgetter(yield* Sharding, yield* MessageStorage)
        const shared = OfferedRuns.make(store, messenger, forget)
        const kernel = makeKernel({ kernel: yield* Kernel, store, shared, messenger })
        return Context.make(Kernel, kernel).pipe(Context.add(RunStore, shared))
      })
    )
  )

/**
 * Makes this process a runner of a cluster, and a client of it.
 *
 * A run is resumed like by a `RunWorker`: `resume` or a person decides about calls of `write` skills that were in
 * flight when a runner died. A runner lends a run whose agent it does not have to one that has the agent. If there is
 * none, the run stays queued with the reason, and begins when a runner with its agent starts.
 *
 * @example
 * const Runner = ClusterKernel.layer({ agents: [writer] }).pipe(
 *   Layer.provide([KernelLive, ClusterNode.layer({ host: "10.0.0.5", port: 34431 })]),
 *   Layer.provide(PgRunStore.layerSqlClient({ url }))
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <A extends RunDriver.Runnable<unknown>, R = never>(
  options: Given<A, R>
): Layer.Layer<Kernel | RunStore, never, Kernel | RunStore | Sharding | MessageStorage | RunDriver.Services<A> | R> =>
  Layer.unwrap(
    Effect.map(NodeLimits, ({ lockExpiration }) =>
      closedInTime(Layer.merge(layerClient, runner<RunDriver.Services<A> | R>(options)), "a runner", lockExpiration)
    )
  )

// ---------------------------------------------------------------- making

/** Registers the entity of runs, and polls for runs without a message. */
const runner = <R>(options: Options<R>): Layer.Layer<never, never, Kernel | RunStore | Sharding | MessageStorage | R> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const store = yield* RunStore
      const messenger = yield* Messages.make
      const elsewhere = yield* Elsewhere.make
      const driver = yield* driverOf(options)
      const unsent = UnsentRuns.layer({
        store,
        messenger,
        sharding: yield* Sharding,
        messages: yield* MessageStorage,
        isPlaced: ({ agent, runId }) =>
          driver.takes(agent) ? Effect.succeed(true) : elsewhere.has(agent, Elsewhere.groupOf(runId)),
        interval: Duration.fromInputUnsafe(options.pollInterval ?? "20 seconds")
      })
      return Layer.merge(yield* entityOf({ store, messenger, elsewhere, driver }), unsent)
    })
  )

/** Creates the driver of a runner, which is listed in the store and can be drained. */
const driverOf = Effect.fnUntraced(function* <R>(options: Options<R>) {
  const { drain = "3 seconds", pollInterval: _, ...given } = options
  const { maxRuns: concurrency } = yield* NodeLimits
  const driver = yield* Effect.orDie(RunDriver.make<RunDriver.Runnable<R>, R>({ ...given, drain, concurrency }))
  yield* driver.register
  return driver
})

const entityOf = Effect.fnUntraced(function* (shared: Omit<Runner, "claim">) {
  const { driver } = shared
  const claim = yield* RunnerClaim.make((yield* NodeLimits).lockExpiration)
  const runner: Runner = { ...shared, claim }
  return RunEntity.toLayer(
    Effect.gen(function* () {
      const { host, port } = yield* Entity.CurrentRunnerAddress
      // A repeated message, and one for a run that was answered in the meantime, waits until the run is at rest.
      const one = Semaphore.makeUnsafe(1)
      const guest = Elsewhere.guest()
      return RunEntity.of({
        Drive: ({ payload }) => one.withPermits(1)(driveMessage(runner, guest, payload)),
        Follow: ({ payload }) =>
          runner.elsewhere.live(
            guest,
            payload,
            Stream.map(liveOf(runner.store, payload.runId, payload.after), encodeLive)
          ),
        Has: ({ payload }) => Effect.succeed(driver.takes(payload.agent)),
        Lend: ({ payload }) => driveHere({ driver, claim: { ...claim, isLent: true } }, payload),
        Ping: () => Effect.succeed(`${host}:${port}`)
      })
    }),
    // An entity without messages ends within 5 seconds: the run of a person's question leaves its runner.
    { concurrency: "unbounded", maxIdleTime: "1 second" }
  )
})
