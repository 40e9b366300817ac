/**
 * A call in the background: the agent has its id at once, continues, and receives the result when it is there.
 *
 * The run rests in the store while the report is written. The clock is a test clock, so that the day takes no time.
 *
 * npm run example -- examples/19-background.ts
 */
import { Console, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, MediaStore, Message, ProtocolRegistry, RunStore, RunWorker, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { desk, model, Writers } from "./reportDesk.ts"

const WritersLive = Layer.succeed(Writers, {
  order: (topic) => Console.log(`  a report about ${topic} is ordered`),
  read: (topic) => Effect.as(Console.log(`  the report about ${topic} is read`), "Tea sells better in winter.")
})

const Stores = Layer.mergeAll(SkillRegistry.layer(), ProtocolRegistry.layer(), RunStore.layerMemory)
const KernelLive = Kernel.layer.pipe(
  Layer.provide(MockProvider.layerOf(model)),
  Layer.provideMerge(Layer.orDie(Stores)),
  Layer.provideMerge(MediaStore.layerMemory)
)
const Worker = Layer.effectDiscard(
  Effect.forkScoped(RunWorker.run({ agents: [desk], pollInterval: "1 hour", onRun: () => Effect.void }))
)

/** Prints what the desk said last, and the calls that work in the background. */
const show = (runId: string) =>
  Effect.gen(function* () {
    const store = yield* RunStore.RunStore
    const { background = [], status, turns } = Option.getOrThrow(yield* store.load(runId))
    const said = turns.at(-1)?.message
    yield* Console.log(said === undefined ? "" : Message.text(said))
    yield* Console.log(`${status.type}, in the background: ${background.map(({ name }) => name).join() || "nothing"}`)
  })

const program = Effect.gen(function* () {
  const runId = yield* Kernel.submit(desk, "How much tea is there? I also need a report about tea.")
  yield* TestClock.adjust("1 minute")
  yield* show(runId)

  yield* Console.log("one day later")
  yield* TestClock.adjust("25 hours")
  yield* show(runId)
})

const Desk = Worker.pipe(
  Layer.provideMerge(KernelLive),
  Layer.provideMerge(WritersLive),
  Layer.provideMerge(TestClock.layer())
)
await Effect.runPromise(Effect.provide(program, Desk))

// Prints:
//   a report about tea is ordered
// There are 40 boxes of tea. The report is ordered.
// paused, in the background: report
// one day later
//   the report about tea is read
// The report says that tea sells better in winter.
// completed, in the background: nothing
