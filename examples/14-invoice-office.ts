/**
 * Fixed steps with agents in them: a program that is recorded step by step, rests for days and continues anywhere.
 *
 * The clock is a test clock, so that the three days take no time. A worker runs the office, as it would on a server.
 *
 * npm run example -- examples/14-invoice-office.ts
 */
import { Console, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, RunWorker } from "kernai"
import { MockProvider } from "kernai/testing"
import { Books, office } from "./invoiceOffice.ts"

const BooksLive = Layer.succeed(Books, {
  match: (order) => Effect.succeed({ account: `account of ${order}` }),
  note: (line) => Console.log(`  ${line}`)
})

const KernelLive = Kernel.layerWith({
  provider: MockProvider.layer(`{"supplier":"Acme","order":"A-7","amount":1200}`)
})
const Worker = Layer.effectDiscard(
  Effect.forkScoped(RunWorker.run({ agents: [office], pollInterval: "1 day", onRun: () => Effect.void }))
)

const program = Effect.gen(function* () {
  const runId = yield* Kernel.submit(office, "Invoice A-7 of Acme about 1,200 euros")
  yield* TestClock.adjust("1 hour")

  const [question] = yield* Kernel.questions(runId)
  yield* Console.log(question?.reason)
  yield* Kernel.answer(runId, [{ callId: question?.callId ?? "", approved: true, by: "Ada" }])
  yield* TestClock.adjust("1 hour")

  yield* Console.log("three days later")
  yield* TestClock.adjust("3 days")
  const { output } = yield* Kernel.resume(office, runId)
  yield* Console.log(`${output.order}: paid ${output.paid}, reminded at ${output.remindedAt}`)
})

const Office = Worker.pipe(
  Layer.provideMerge(KernelLive),
  Layer.provideMerge(BooksLive),
  Layer.provideMerge(TestClock.layer())
)
await Effect.runPromise(Effect.provide(program, Office))

// Prints:
// Pay 1200 to Acme?
//   pay 1200 to account of A-7
//   mail Acme: A-7 is paid
// three days later
//   mail Acme: Please confirm A-7
// paid 1200, reminded at 1970-01-04T01:00:00.000Z
