/**
 * A door of your own: runs over a line protocol, for a client that knows nothing of kernai.
 *
 * A door decodes what comes in, asks public modules, and encodes what goes out. The run belongs to a worker, so a client
 * that leaves stops nothing: it can follow the run again from the last revision it saw.
 *
 * npm run example -- examples/13-own-door.ts
 */
import { Console, Effect, Layer, Logger, Schedule, Schema, Stream } from "effect"
import { Agent, Kernel, Policy, RunEvent, RunStore, RunWorker, Skill } from "kernai"
import { StoredRuns } from "kernai/store-kit"
import { MockProvider } from "kernai/testing"

const pay = Skill.make("pay", {
  description: "Pays an invoice",
  input: Schema.Struct({ invoice: Schema.String }),
  effects: "write",
  execute: ({ invoice }) => Effect.succeed(`${invoice} is paid`)
})

const clerk = Agent.make({ name: "clerk", instructions: "You pay invoices.", model: "scripted", skills: [pay] })

// ---------------------------------------------------------------- the door

type Answered = Stream.Stream<string, AnswerFailure, Kernel.Kernel | RunStore.RunStore>
type AnswerFailure = Kernel.SubmitError | Kernel.FollowError | Kernel.AnswerError | Kernel.CancelError

/** Answers one line of a client with lines. */
const respond = (line: string): Answered => {
  const [verb = "", runId = "", ...words] = line.split(" ")
  switch (verb) {
    case "start":
      return Stream.fromEffect(Effect.as(Kernel.submit(clerk, words.join(" "), { runId }), `started ${runId}`))
    case "follow":
      return Kernel.follow(runId, { after: Number(words[0] ?? 0) }).pipe(Stream.flatMap(linesOf))
    case "questions":
      return Stream.fromIterableEffect(
        Effect.map(Kernel.questions(runId), (open) => open.map(({ callId, reason }) => `question ${callId} ${reason}`))
      )
    case "answer":
      return Stream.fromEffect(
        Kernel.answer(runId, [{ callId: words[0] ?? "", approved: words[1] === "yes", by: "a client" }]).pipe(
          // A worker that paused the run gives it back a moment later.
          Effect.retry({ while: ({ _tag }) => _tag === "RunBusy", schedule: Schedule.spaced("20 millis"), times: 100 }),
          Effect.as("answered")
        )
      )
    case "cancel":
      return Stream.fromEffect(Effect.as(Kernel.cancel(runId, { by: "a client" }), "cancelled"))
    case "state":
      return Stream.fromEffect(
        Effect.map(
          Effect.flatMap(RunStore.RunStore, (store) => StoredRuns.stored(store, runId)),
          ({ revision, status }) => `${status.type} at revision ${revision}`
        )
      )
    default:
      return Stream.make(`unknown verb ${verb}`)
  }
}

/** What a client sees of an event. Instructions and prompts stay inside. */
const linesOf = (event: RunEvent.RunEvent): Stream.Stream<string> => {
  if (event.type === "skill_result") return Stream.make(`did ${event.skill}`)
  if (event.type === "final") return Stream.make(`answer ${event.text}`)
  return RunEvent.isRest(event) ? Stream.make(`rests: ${event.type}`) : Stream.empty
}

/** A connection: lines in, lines out. A failure is one more line, so the connection stays open. */
const serve = (lines: Stream.Stream<string>) =>
  Stream.flatMap(lines, (line) => Stream.catch(respond(line), (error) => Stream.make(`failed: ${error.message}`)))

// ---------------------------------------------------------------- a client

const program = Effect.gen(function* () {
  const worker = yield* RunWorker.start({ agents: [clerk] })
  const say = (line: string) =>
    Effect.andThen(Console.log(`> ${line}`), Stream.runForEach(serve(Stream.make(line)), Console.log))
  yield* say("start run-1 Pay invoice 7.")
  yield* worker.take("run-1")
  yield* say("follow run-1")
  yield* say("questions run-1")
  const [question] = yield* Kernel.questions("run-1")
  yield* say(`answer run-1 ${question?.callId ?? ""} yes`)
  yield* say("follow run-1 7")
  yield* say("cancel run-1")
  yield* say("state run-2")
}).pipe(Effect.scoped)

const KernelLive = Kernel.layerWith({
  provider: MockProvider.layer(
    `<block type="command" name="pay">{"invoice": "7"}</block>`,
    `<block type="final">Invoice 7 is paid.</block>`
  )
}).pipe(
  Layer.provide(Policy.layerRules({ confirm: [{ name: "pay", reason: "money moves" }] })),
  // A worker logs that a run stopped; here only the client speaks.
  Layer.provideMerge(Logger.layer([]))
)

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// > start run-1 Pay invoice 7.
// started run-1
// > follow run-1
// rests: paused
// > questions run-1
// question run-1:t1.0 money moves
// > answer run-1 run-1:t1.0 yes
// answered
// > follow run-1 7
// did pay
// answer Invoice 7 is paid.
// rests: run_completed
// > cancel run-1
// failed: run 'run-1' has completed already
// > state run-2
// failed: no run 'run-2'
