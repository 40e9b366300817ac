/** Processes of a cluster in this process: each has a kernel and a store object of its own, on the same runs. */
import { Effect, Fiber, Layer, Option, type Queue, Stream } from "effect"
import { RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import {
  Agent,
  Kernel,
  MediaStore,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry,
  StreamPart
} from "kernai"
import { ClusterKernel } from "kernai/cluster"
import { MockProvider } from "kernai/testing"

/** Pays once, then tells. */
export const clerk = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

/** Its model: what it says depends only on the messages so far, so every process receives the same. */
export const scripted = MockProvider.make().onCall((request: Provider.Request) =>
  request.messages.some((message) => message.role === "assistant")
    ? "paid"
    : { calls: [{ id: "call-a", name: "pay", input: { to: "eva" } }] }
)

/** A model whose replies are sent piece by piece, as the test says; each text ends with `end`. */
export const spoken = (pieces: Queue.Dequeue<string>): Provider.ProviderShape => ({
  name: "spoken",
  stream: () =>
    Stream.fromQueue(pieces).pipe(
      Stream.takeUntil((piece) => piece === "end"),
      Stream.map((piece) => (piece === "end" ? StreamPart.finish() : StreamPart.text(piece)))
    )
})

export const pay = (execute: Effect.Effect<string> = Effect.succeed("ok"), effects: Skill.Effects = "write") =>
  Skill.dynamic("pay", { description: "pays", effects, inputSchema: { type: "object" }, execute: () => execute })

export interface Setting {
  readonly skills?: ReadonlyArray<Skill.AnySkill>
  readonly provider?: Provider.ProviderShape
  /** A kernel that breaks a promise, instead of the real one. */
  readonly kernel?: typeof Kernel.layerNoProvider
}

/** What a process has without a cluster. */
export const kernelOn = (
  store: RunStore.RunStoreShape,
  { kernel = Kernel.layerNoProvider, provider, skills = [pay()] }: Setting = {}
) =>
  kernel.pipe(
    Layer.provide([
      SkillRegistry.layer(...skills),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      provider === undefined ? MockProvider.layerOf(scripted) : Layer.succeed(Provider.Provider, provider)
    ]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, { ...store })),
    Layer.orDie
  )

/** Starts a runner. It gives its runs up when the scope closes. */
export const runner = (
  store: RunStore.RunStoreShape,
  setting?: Setting,
  options: Partial<ClusterKernel.Options> = {}
) =>
  Layer.build(
    Layer.fresh(ClusterKernel.layer({ agents: [clerk], ...options }).pipe(Layer.provide(kernelOn(store, setting))))
  )

/** Starts a client. */
export const client = (store: RunStore.RunStoreShape, setting?: Setting) =>
  Layer.build(Layer.fresh(ClusterKernel.layerClient.pipe(Layer.provide(kernelOn(store, setting)))))

/** The runs for which a runner has an entity. */
export const entities = Effect.flatMap(Sharding.Sharding, ({ activeEntityCount }) => activeEntityCount)

/** Waits for a fiber while the clock goes on: messages are stored and read at intervals. */
export const soon = <A, E>(fiber: Fiber.Fiber<A, E>): Effect.Effect<A, E> =>
  Effect.andThen(TestClock.adjust("10 seconds"), Fiber.join(fiber))

/** A machine on the messages in context. A runner's machine owns every run, whatever other machines believe. */
const machineOf = (config: Partial<ShardingConfig.ShardingConfig["Service"]>) =>
  Layer.build(
    Layer.fresh(
      Sharding.layer.pipe(
        Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop, Runners.layerNoop]),
        Layer.provide(ShardingConfig.layer({ simulateRemoteSerialization: false, ...config }))
      )
    )
  )

/** The machine of a runner. */
export const machine = machineOf({})

/** The machine of a client: its messages are read by runners when they look. */
export const clientMachine = machineOf({ runnerAddress: Option.none() })
