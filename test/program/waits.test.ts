import { assert, describe, it } from "@effect/vitest"
import { Clock, DateTime, Effect, Fiber, Layer, Option, Random, Schedule, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, Program, RunStore, RunWorker, type Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"
import { stored } from "../support/workflow.ts"

/** A worker that runs a program in the background. */
const working = <Output, S extends Skill.AnySkill<unknown>>(program: Agent.Agent<Output, S>) =>
  Layer.effectDiscard(Effect.forkScoped(RunWorker.run({ agents: [program], pollInterval: "12 hours" })))

/** The answer of a run, once it has one. */
const answerOf = (runId: string) => Effect.map(stored(runId), ({ turns }) => turns.at(-1)?.message?.content)

/** Agrees to the only question of a run. */
const agreement = (runId: string) =>
  Effect.map(Kernel.questions(runId), ([question]) => [{ callId: question?.callId ?? "", approved: true }])

describe("a program that waits", () => {
  it.effect("sleeps for days without a process, and a worker wakes it", () =>
    Effect.gen(function* () {
      const reminder = Program.make("reminder", {
        run: () =>
          Effect.gen(function* () {
            const before = yield* DateTime.now
            yield* Program.sleep("3 days")
            return `${DateTime.formatIso(before)} ${DateTime.formatIso(yield* DateTime.now)}`
          })
      })
      yield* Effect.gen(function* () {
        yield* Kernel.submit(reminder, "go", { runId: "run" })
        yield* TestClock.adjust("2 days")
        const head = Option.getOrThrow(yield* (yield* RunStore.RunStore).head("run"))
        assert.strictEqual(head.status.type, "waiting")
        assert.deepStrictEqual(yield* Kernel.questions("run"), [])
        yield* TestClock.adjust("1 day")
      }).pipe(Effect.provide(working(reminder)))
      const text = "1970-01-01T00:00:00.000Z 1970-01-04T00:00:00.000Z"
      assert.deepStrictEqual(yield* answerOf("run"), [{ type: "text", text }])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("continues from its sleep by a resume once the time has come, and not before", () =>
    Effect.gen(function* () {
      const later = Program.make("later", { run: () => Effect.as(Effect.sleep("1 hour"), "done") })
      assert.strictEqual((yield* Effect.flip(Kernel.run(later, "go", { runId: "run" })))._tag, "RunPaused")
      yield* TestClock.adjust("59 minutes")
      assert.strictEqual((yield* Effect.flip(Kernel.resume(later, "run")))._tag, "RunPaused")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Kernel.resume(later, "run")).output, "done")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("retries a failing step by a schedule of Effect", () =>
    Effect.gen(function* () {
      let tries = 0
      const send = Effect.suspend(() => (++tries < 3 ? Effect.fail("busy") : Effect.succeed("sent")))
      const patient = Program.make("patient", {
        run: () => Effect.retry(Program.step("send", send), Schedule.exponential("1 second"))
      })
      const fiber = yield* Effect.forkChild(Kernel.run(patient, "go", { runId: "run" }))
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual((yield* Fiber.join(fiber)).output, "sent")
      assert.deepStrictEqual(
        (yield* stored("run")).turns.flatMap(({ completed }) => completed.map(({ name }) => name)),
        ["program_step", "program_sleep", "program_step", "program_sleep", "program_step"]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("has the same time and the same random numbers in every process, and others in another run", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const random = Program.make("random", {
        run: () =>
          Effect.gen(function* () {
            const first = yield* Random.next
            yield* Effect.sleep("2 hours")
            seen.push(`${first} ${yield* Random.nextInt} ${yield* Clock.currentTimeMillis}`)
            yield* Program.confirm("Go on?")
            return "done"
          })
      })
      const asked = (runId: string) =>
        Effect.gen(function* () {
          yield* Effect.flip(Kernel.run(random, "go", { runId }))
          yield* TestClock.adjust("2 hours")
          yield* Effect.flip(Kernel.resume(random, runId))
        })
      yield* asked("run")
      yield* TestClock.adjust("1 hour")
      yield* Kernel.resume(random, "run", { answers: yield* agreement("run") })
      assert.lengthOf(seen, 2)
      assert.strictEqual(seen[0], seen[1])
      yield* asked("other")
      assert.notStrictEqual(seen[2]?.split(" ")[0], seen[0]?.split(" ")[0])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("takes another way once the timeout of a question is over", () =>
    Effect.gen(function* () {
      const asking = Program.make("asking", {
        run: () =>
          Effect.as(Program.confirm("Pay?"), "paid").pipe(
            Effect.timeoutOrElse({ duration: "2 days", orElse: () => Effect.succeed("not paid") })
          )
      })
      yield* Effect.gen(function* () {
        yield* Kernel.submit(asking, "go", { runId: "run" })
        yield* TestClock.adjust("1 day")
        assert.lengthOf(yield* Kernel.questions("run"), 1)
        yield* TestClock.adjust("1 day")
      }).pipe(Effect.provide(working(asking)))
      assert.deepStrictEqual(yield* answerOf("run"), [{ type: "text", text: "not paid" }])
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a program that asks", () => {
  it.effect("asks a person with a form, and receives the decoded values", () =>
    Effect.gen(function* () {
      const form = Schema.Struct({ account: Schema.String, copies: Schema.Int })
      const asking = Program.make("asking", { output: form, run: () => Program.ask("Which account?", { form }) })
      yield* Effect.flip(Kernel.run(asking, "go", { runId: "run" }))
      const [question] = yield* Kernel.questions("run")
      assert.strictEqual(question?.asking?.message, "Which account?")
      const callId = question?.callId ?? ""
      const given = (values: { readonly [name: string]: Schema.Json }) =>
        Kernel.answer("run", [{ callId, approved: true, values }])
      assert.strictEqual((yield* Effect.flip(given({ account: "a" })))._tag, "AnswerRefused")
      yield* given({ account: "a", copies: 2 })
      assert.deepStrictEqual((yield* Kernel.resume(asking, "run")).output, { account: "a", copies: 2 })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("fails the question that a person declines, and the one that nobody answers in time", () =>
    Effect.gen(function* () {
      const confirmed = Effect.as(Program.confirm("Pay?", { within: "1 hour" }), "paid")
      const asking = Program.make("asking", {
        run: () =>
          Effect.catchTag(confirmed, "CallFailed", ({ detail, error }) => Effect.succeed(`${error}: ${detail}`))
      })
      yield* Effect.flip(Kernel.run(asking, "go", { runId: "declined" }))
      const answers = (yield* agreement("declined")).map(({ callId }) => ({
        callId,
        approved: false,
        reason: "too much"
      }))
      assert.strictEqual((yield* Kernel.resume(asking, "declined", { answers })).output, "Declined: too much")
      yield* Effect.flip(Kernel.run(asking, "go", { runId: "late" }))
      yield* TestClock.adjust("1 hour")
      assert.strictEqual((yield* Kernel.resume(asking, "late")).output, "NotAnswered: Nobody answered in time.")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is refused by an answer in time, however late its run continues", () =>
    Effect.gen(function* () {
      const refused = Effect.catchTag(Program.confirm("Pay?", { within: "1 hour" }), "CallFailed", ({ error }) =>
        Effect.succeed(error)
      )
      const asking = Program.make("asking", { run: () => Effect.map(refused, String) })
      yield* Effect.flip(Kernel.run(asking, "go", { runId: "run" }))
      const answers = (yield* agreement("run")).map(({ callId }) => ({ callId, approved: false }))
      yield* Kernel.answer("run", answers)
      yield* TestClock.adjust("2 hours")
      assert.strictEqual((yield* Kernel.resume(asking, "run")).output, "Declined")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("asks an agent as a run below it, and receives its typed answer", () =>
    Effect.gen(function* () {
      const extractor = Agent.make({
        name: "extractor",
        instructions: "Read the invoice.",
        model: "m",
        dialect: "tools",
        output: Schema.Struct({ amount: Schema.FiniteFromString })
      })
      const invoice = Program.make("invoice", {
        output: Schema.Finite,
        agents: [extractor],
        run: (text) => Effect.map(Program.ask(extractor, text), ({ amount }) => amount + 1)
      })
      const provider = MockProvider.make(`{"amount":"41"}`)
      const result = yield* Effect.provide(Kernel.run(invoice, "Invoice about 41"), MockProvider.layerOf(provider))
      assert.strictEqual(result.output, 42)
      assert.include(JSON.stringify(provider.lastCall?.messages), "Invoice about 41")
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a program of another version", () => {
  it.effect("makes the calls of the version that its run started with", () =>
    Effect.gen(function* () {
      const made = (version: number) =>
        Program.make("versions", {
          version,
          run: () =>
            Effect.gen(function* () {
              const started = yield* Program.version
              const first = started >= 2 ? yield* Program.step("audit", Effect.succeed("audited")) : "plain"
              yield* Program.confirm("Go on?")
              return first
            })
        })
      yield* Effect.flip(Kernel.run(made(1), "go", { runId: "old" }))
      yield* Effect.flip(Kernel.run(made(2), "go", { runId: "new" }))
      const finished = (runId: string) =>
        Effect.gen(function* () {
          return (yield* Kernel.resume(made(2), runId, { answers: yield* agreement(runId) })).output
        })
      assert.deepStrictEqual([yield* finished("old"), yield* finished("new")], ["plain", "audited"])
    }).pipe(Effect.provide(kernel()))
  )
})
