import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer, Option, Ref, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, Media, MediaStore, Middleware, Policy, Program, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "./support/kernel.ts"
import { call } from "./support/team.ts"
import { stored } from "./support/workflow.ts"

/** A skill that adds, and the calls it got. */
const adder = () => {
  const calls: Array<number> = []
  const add = Skill.make("add", {
    description: "Adds one",
    input: Schema.Struct({ to: Schema.Finite }),
    effects: "read",
    execute: ({ to }) => Effect.sync(() => calls.push(to)).pipe(Effect.as(to + 1))
  })
  return { add, calls }
}

/** A policy that asks a person about the calls of one skill. */
const confirming = (skill: string) =>
  Policy.layer(({ name }) => Effect.succeed(name === skill ? Policy.confirm("really?") : Policy.allowed))

const Amount = Schema.Struct({ amount: Schema.Finite })

describe("a program", () => {
  it.effect("calls its skills, and returns its result as the typed answer of its run", () =>
    Effect.gen(function* () {
      const { add, calls } = adder()
      const twice = Program.make("twice", {
        input: Amount,
        output: Schema.Struct({ sum: Schema.Finite }),
        skills: [add],
        run: ({ amount }) =>
          Effect.gen(function* () {
            const once = yield* Program.call(add, { to: amount })
            return { sum: yield* Program.call(add, { to: once }) }
          })
      })
      const result = yield* Kernel.run(twice, { amount: 5 }, { runId: "run" })
      assert.deepStrictEqual(result.output, { sum: 7 })
      assert.deepStrictEqual(calls, [5, 6])
      assert.strictEqual(result.costUsd, 0)
      assert.strictEqual(result.unreportedTurns, 0)
      const state = yield* stored("run")
      assert.deepStrictEqual(
        state.turns.map(({ completed, model }) => [model, completed.map(({ name }) => name)]),
        [
          ["program/twice", ["add"]],
          ["program/twice", ["add"]],
          ["program/twice", []]
        ]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect(
    "receives objects, lists, numbers, texts that look like JSON, and nothing as its skills returned them",
    () =>
      Effect.gen(function* () {
        const values = [{ a: [1, null] }, [1, "2"], 5, true, "5", `["a"]`, "", null]
        const give = Skill.make("give", {
          description: "Gives a value",
          input: Schema.Struct({ index: Schema.Int }),
          effects: "read",
          execute: ({ index }) => Effect.succeed(values[index])
        })
        const all = Program.make("all", {
          output: Schema.Json,
          skills: [give],
          run: () =>
            Effect.map(
              Effect.forEach(values, (_, index) => Program.call(give, { index })),
              Schema.decodeUnknownSync(Schema.Json)
            )
        })
        assert.deepStrictEqual((yield* Kernel.run(all, "go")).output, values)
      }).pipe(Effect.provide(kernel()))
  )

  it.effect("writes no text but its result", () =>
    Effect.gen(function* () {
      const { add } = adder()
      const once = Program.make("once", { skills: [add], run: () => Effect.map(Program.call(add, { to: 1 }), String) })
      const events = yield* Stream.runCollect(Kernel.stream(once, "go", { runId: "run" }))
      assert.deepStrictEqual(
        [...events].flatMap((event) => (event.type === "text_chunk" ? [event.text] : [])),
        ["2"]
      )
      const { turns } = yield* stored("run")
      assert.deepStrictEqual(turns[0]?.message?.content[0], {
        type: "thinking",
        content: "",
        redacted: false,
        origin: { provider: "program", model: "once" },
        signature: { version: 1, seed: "run" }
      })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("makes the calls that are pending together in one reply, and they run at once", () =>
    Effect.gen(function* () {
      const wait = Skill.make("wait", {
        description: "Waits",
        input: Schema.Struct({ seconds: Schema.Finite }),
        effects: "read",
        execute: ({ seconds }) => Effect.as(Effect.sleep(seconds * 1_000), seconds)
      })
      const three = Program.make("three", {
        output: Schema.Array(Schema.Finite),
        skills: [wait],
        run: () => Effect.forEach([3, 1, 2], (seconds) => Program.call(wait, { seconds }), { concurrency: "unbounded" })
      })
      const fiber = yield* Effect.forkChild(Kernel.run(three, "go", { runId: "run" }))
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual((yield* Fiber.join(fiber)).output, [3, 1, 2])
      assert.deepStrictEqual(
        (yield* stored("run")).turns.map(({ completed }) => completed.length),
        [3, 0]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("runs a step with the services of the program and the real time, once", () =>
    Effect.gen(function* () {
      const count = yield* Ref.make(0)
      const Books = Layer.succeed(Bookkeeper, { match: Ref.updateAndGet(count, (n) => n + 1) })
      const match = Program.make("match", {
        output: Schema.Array(Schema.Finite),
        run: () =>
          Effect.gen(function* () {
            const order = yield* Program.step(
              "match",
              Effect.flatMap(Bookkeeper, (books) => books.match)
            )
            const before = yield* Clock.currentTimeMillis
            const at = yield* Program.step("time", Effect.andThen(Effect.sleep(1_000), Clock.currentTimeMillis))
            return [order, before, at, yield* Clock.currentTimeMillis]
          })
      })
      const fiber = yield* Effect.forkChild(Effect.provide(Kernel.run(match, "go"), Books))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual((yield* Fiber.join(fiber)).output, [1, 0, 1_000, 1_000])
      assert.strictEqual(yield* Ref.get(count), 1)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("continues after a policy asked a person, and makes no recorded call again", () =>
    Effect.gen(function* () {
      const { add, calls } = adder()
      const pay = Skill.make("pay", {
        description: "Pays",
        input: Amount,
        execute: ({ amount }) => Effect.succeed(`paid ${amount}`)
      })
      let begun = 0
      const office = Program.make("office", {
        skills: [add, pay],
        run: () =>
          Effect.gen(function* () {
            begun++
            const amount = yield* Program.call(add, { to: 4 })
            const matched = yield* Program.step("match", Effect.succeed("order 7"))
            return `${matched} ${yield* Program.call(pay, { amount })}`
          })
      })
      const asked = yield* Effect.flip(Kernel.run(office, "go", { runId: "run" }))
      assert.strictEqual(asked._tag, "RunPaused")
      const [question] = yield* Kernel.questions("run")
      assert.deepInclude(question, { name: "pay", input: { amount: 5 } })
      const answers = [{ callId: question?.callId ?? "", approved: true }]
      const result = yield* Kernel.resume(office, "run", { answers })
      assert.strictEqual(result.output, "order 7 paid 5")
      assert.deepStrictEqual([calls, begun], [[4], 2])
    }).pipe(Effect.provide(Layer.provide(kernel(), confirming("pay"))))
  )

  it.effect("runs a step that was approved in another process", () =>
    Effect.gen(function* () {
      const asks = Program.make("asks", { run: () => Program.step("send", Effect.succeed("sent")) })
      yield* Effect.flip(Kernel.run(asks, "go", { runId: "run" }))
      const answers = [{ callId: (yield* Kernel.questions("run"))[0]?.callId ?? "", approved: true }]
      assert.strictEqual((yield* Kernel.resume(asks, "run", { answers })).output, "sent")
    }).pipe(Effect.provide(Layer.provide(kernel(), confirming("program_step"))))
  )

  it.effect("catches the failure of a call as a value", () =>
    Effect.gen(function* () {
      class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { card: Schema.String }) {}
      const charge = Skill.make("charge", {
        description: "Charges a card",
        input: Schema.Struct({}),
        execute: () => Effect.fail(new CardDeclined({ card: "1234" }))
      })
      const shop = Program.make("shop", {
        skills: [charge],
        run: () =>
          Effect.catchTag(Program.call(charge, {}), "CallFailed", ({ call, error }) =>
            Effect.succeed(`${call} failed with ${error}`)
          )
      })
      assert.strictEqual((yield* Kernel.run(shop, "go")).output, "charge failed with CardDeclined")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("catches a declared failure with its fields, also from its record", () =>
    Effect.gen(function* () {
      class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { until: Schema.Date }) {}
      const charge = Skill.make("charge", {
        description: "Charges a card",
        input: Amount,
        failure: CardDeclined,
        execute: ({ amount }) =>
          amount > 10 ? Effect.fail(new CardDeclined({ until: new Date(5) })) : Effect.die(new Error("no network"))
      })
      const shop = Program.make("shop", {
        skills: [charge],
        run: Effect.fnUntraced(function* () {
          const declined = yield* Effect.flip(Program.call(charge, { amount: 11 }))
          const died = yield* Effect.flip(Program.call(charge, { amount: 1 }))
          yield* Program.confirm("Go on?")
          const isTyped = declined instanceof CardDeclined && declined.until.getTime() === 5
          return `${isTyped} ${died._tag}`
        })
      })
      yield* Effect.flip(Kernel.run(shop, "go", { runId: "run" }))
      const answers = [{ callId: (yield* Kernel.questions("run"))[0]?.callId ?? "", approved: true }]
      assert.strictEqual((yield* Kernel.resume(shop, "run", { answers })).output, "true CallFailed")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("fails its run with its failure, and the corrected program continues the run", () =>
    Effect.gen(function* () {
      const { add, calls } = adder()
      const made = (after: Effect.Effect<string, string>) =>
        Program.make("frail", { skills: [add], run: () => Effect.andThen(Program.call(add, { to: 1 }), after) })
      const failed = yield* Effect.flip(Kernel.run(made(Effect.fail("no order")), "go", { runId: "run" }))
      assert.deepInclude(failed, { _tag: "ProgramFailed", program: "frail", detail: "no order" })
      assert.strictEqual((yield* stored("run")).status.type, "failed")
      assert.strictEqual((yield* Kernel.resume(made(Effect.succeed("done")), "run")).output, "done")
      assert.deepStrictEqual(calls, [1])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("takes a value of its input, whose JSON is the message of its run, or a text with that JSON", () =>
    Effect.gen(function* () {
      const input = Schema.Struct({ at: Schema.Date, tags: Schema.Array(Schema.String) })
      const dated = Program.make("dated", {
        input,
        run: ({ at, tags }) => Effect.succeed(`${at.getTime()} ${tags.join("+")}`)
      })
      const text = `{"at":"1970-01-01T00:00:01.000Z","tags":["a","b"]}`
      const value = { at: new Date(1_000), tags: ["a", "b"] }
      assert.strictEqual((yield* Kernel.run(dated, value, { runId: "run" })).output, "1000 a+b")
      assert.deepStrictEqual((yield* stored("run")).input[0]?.content, [{ type: "text", text }])
      assert.strictEqual((yield* Kernel.run(dated, text)).output, "1000 a+b")
      const list = Program.make("list", {
        input: Schema.Array(Schema.String),
        run: (words) => Effect.succeed(words.join("+"))
      })
      assert.strictEqual((yield* Kernel.run(list, ["a", "b"])).output, "a+b")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("takes a medium in its input, and gives it to a skill and to an agent whose model sees it", () =>
    Effect.gen(function* () {
      const pdf = Media.fromBytes(new Uint8Array([1, 2, 3]), "application/pdf")
      const measure = Skill.make("measure", {
        description: "Measures a document",
        input: Schema.Struct({ pdf: MediaStore.Reference }),
        effects: "read",
        execute: ({ pdf }) =>
          MediaStore.MediaStore.use((store) => Effect.map(store.bytes(pdf.id), ({ length }) => length))
      })
      const input = Schema.Struct({ pdf: MediaStore.Medium })
      const reader = Agent.make({ name: "reader", instructions: "", model: "m", dialect: "tools", input })
      const invoice = Program.make("invoice", {
        input,
        agents: [reader],
        skills: [measure],
        run: Effect.fnUntraced(function* ({ pdf }) {
          const length = yield* Program.call(measure, { pdf })
          return `${pdf.mimeType} ${length} ${yield* Program.ask(reader, { pdf })}`
        })
      })
      const provider = MockProvider.make("Invoice 7")
      const result = yield* Effect.provide(Kernel.run(invoice, { pdf }), MockProvider.layerOf(provider))
      assert.strictEqual(result.output, "application/pdf 3 Invoice 7")
      const seen = provider.lastCall?.messages.at(-1)?.content ?? []
      assert.deepStrictEqual(
        seen.map(({ type }) => type),
        ["text", "document"]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("refuses a value that does not fit before its run is stored, and says where", () =>
    Effect.gen(function* () {
      const typed = Program.make("typed", {
        input: Schema.Struct({ amount: Schema.Int.check(Schema.isGreaterThan(0)) }),
        run: () => Effect.succeed("never")
      })
      const failed = yield* Effect.flip(Kernel.run(typed, { amount: -1 }, { runId: "run" }))
      assert.deepInclude(failed, { _tag: "AgentConfigInvalid", path: "input.amount" })
      assert.isTrue(Option.isNone(yield* (yield* RunStore.RunStore).head("run")))
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("fails its run if its input does not fit, and names what is wrong", () =>
    Effect.gen(function* () {
      const typed = Program.make("typed", { input: Amount, run: () => Effect.succeed("never") })
      const failed = yield* Effect.flip(Kernel.run(typed, `{"amount":"much"}`))
      assert.deepInclude(failed, { _tag: "ProgramFailed", error: "InvalidInput" })
      assert.include(failed.message, "amount")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("fails its run if it no longer makes the recorded call, and runs nothing", () =>
    Effect.gen(function* () {
      const { add, calls } = adder()
      const made = (to: number, after: Effect.Effect<string, string>) =>
        Program.make("moved", { skills: [add], run: () => Effect.andThen(Program.call(add, { to }), after) })
      yield* Effect.flip(Kernel.run(made(1, Effect.fail("later")), "go", { runId: "run" }))
      const changed = yield* Effect.flip(Kernel.resume(made(2, Effect.succeed("done")), "run"))
      assert.deepInclude(changed, { _tag: "ProgramChanged", turn: 1, recorded: `add {"to":1}`, now: `add {"to":2}` })
      assert.deepStrictEqual(calls, [1])
      assert.strictEqual((yield* Kernel.resume(made(1, Effect.succeed("done")), "run")).output, "done")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("fails its run with its own error below a middleware, too", () =>
    Effect.gen(function* () {
      const failing = Program.make("failing", { run: () => Effect.fail("no order") })
      const failed = yield* Effect.flip(Kernel.run(failing, "go"))
      assert.deepInclude(failed, { _tag: "ProgramFailed", detail: "no order" })
    }).pipe(Effect.provide(Layer.provide(kernel(), Middleware.layer({ callModel: (call, next) => next(call) }))))
  )

  it.effect("fails its run if it waits for a promise or a timer of its own, and does not hang", () =>
    Effect.gen(function* () {
      const { add } = adder()
      const impure = Program.make("impure", {
        skills: [add],
        run: () =>
          Effect.andThen(
            Program.call(add, { to: 1 }),
            Effect.promise(() => Promise.resolve("x"))
          )
      })
      const failed = yield* Effect.flip(Kernel.run(impure, "go"))
      assert.deepInclude(failed, { _tag: "ProgramImpure", after: "add" })
      assert.include(failed.message, "Program.step")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("keeps what an effect acquires until its own scope ends", () =>
    Effect.gen(function* () {
      const events: Array<string> = []
      const reader = Effect.acquireRelease(
        Effect.sync(() => events.push("opened")),
        () => Effect.sync(() => events.push("closed"))
      )
      const { add } = adder()
      const holder = Program.make("holder", {
        skills: [add],
        run: () =>
          Effect.gen(function* () {
            yield* Effect.scoped(Effect.andThen(Program.compute(reader), Program.call(add, { to: 1 })))
            events.push("after")
            return "done"
          })
      })
      yield* Kernel.run(holder, "go")
      assert.deepStrictEqual(events, ["opened", "closed", "after"])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("waits for an effect that is no call, and runs it again in a replay", () =>
    Effect.gen(function* () {
      const computed: Array<number> = []
      const parse = Effect.map(Clock.currentTimeMillis, (now) => computed.push(now)).pipe(
        Effect.andThen(Effect.promise(() => Promise.resolve("parsed")))
      )
      const parser = Program.make("parser", {
        run: () =>
          Effect.gen(function* () {
            const all = yield* Effect.all([Program.compute(parse), Program.compute(Effect.succeed("counted"))], {
              concurrency: "unbounded"
            })
            const failed = yield* Effect.flip(Program.compute(Effect.delay(Effect.fail("no text"), 1_000)))
            return `${all.join(" ")} ${failed} ${yield* Program.step("send", Effect.succeed("sent"))}`
          })
      })
      const asked = yield* Effect.forkChild(Effect.flip(Kernel.run(parser, "go", { runId: "run" })))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(asked))._tag, "RunPaused")
      const answers = [{ callId: (yield* Kernel.questions("run"))[0]?.callId ?? "", approved: true }]
      const resumed = yield* Effect.forkChild(Kernel.resume(parser, "run", { answers }))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(resumed)).output, "parsed counted no text sent")
      assert.deepStrictEqual(computed, [0, 1_000])
    }).pipe(Effect.provide(Layer.provide(kernel(), confirming("program_step"))))
  )

  it.effect("releases what it holds when its run stops", () =>
    Effect.gen(function* () {
      const released: Array<string> = []
      const holder = Program.make("holder", {
        run: () =>
          Effect.scoped(
            Effect.andThen(
              Effect.addFinalizer(() => Effect.sync(() => released.push("released"))),
              Program.step("send", Effect.succeed("sent"))
            )
          )
      })
      yield* Effect.exit(Kernel.run(holder, "go"))
      assert.deepStrictEqual(released, ["released"])
    }).pipe(Effect.provide(Layer.provide(kernel(), confirming("program_step"))))
  )

  it.effect("forecasts no cache of a vendor for its conversation", () =>
    Effect.gen(function* () {
      const { add } = adder()
      const long = Program.make("long", { skills: [add], run: () => Effect.as(Program.call(add, { to: 1 }), "done") })
      const events = yield* Stream.runCollect(Kernel.stream(long, "word ".repeat(5_000)))
      const sent = events.filter((event) => event.type === "messages_sent")
      assert.deepStrictEqual(
        sent.map(({ cache }) => cache),
        [undefined, undefined]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is an agent that other agents call with its typed input", () =>
    Effect.gen(function* () {
      const { add } = adder()
      const plus = Program.make("plus", {
        description: "Adds one to an amount",
        input: Amount,
        output: Schema.Finite,
        skills: [add],
        run: ({ amount }) => Program.call(add, { to: amount })
      })
      const lead = Agent.make({ name: "lead", instructions: "", model: "m", dialect: "tools", agents: [plus] })
      const provider = MockProvider.make(call("plus", { amount: 41 }), "It is 42.")
      yield* Kernel.run(lead, "?", { provider, runId: "run" })
      const [result] = (yield* stored("run")).turns[0]?.completed ?? []
      assert.deepInclude(result, { name: "plus", output: [{ type: "text", text: "42" }] })
    }).pipe(Effect.provide(kernel()))
  )
})

class Bookkeeper extends Context.Service<Bookkeeper, { readonly match: Effect.Effect<number> }>()("test/Bookkeeper") {}
