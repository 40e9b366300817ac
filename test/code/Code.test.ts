import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, CodeInterpreter, Kernel, Policy, Program, Skill } from "kernai"
import { Code } from "kernai/code"
import { kernel } from "../support/kernel.ts"
import { call, lastAsked, model, voices } from "../support/team.ts"
import { stored } from "../support/workflow.ts"

const customers = Skill.make("customers", {
  description: "Lists the customers",
  input: Schema.Struct({ city: Schema.optionalKey(Schema.String) }),
  output: Schema.Struct({ rows: Schema.Array(Schema.Struct({ id: Schema.Int, since: Schema.Date })) }),
  effects: "read",
  execute: () => Effect.succeed({ rows: [1, 2].map((id) => ({ id, since: new Date(id) })) })
})

const balance = Skill.make("balance", {
  description: "Returns the balance of a customer",
  input: Schema.Struct({ id: Schema.Int }),
  output: Schema.Finite,
  effects: "read",
  execute: ({ id }) => Effect.succeed(id * 10)
})

/** A skill that pays, and what it has paid. */
const payer = () => {
  const paid: Array<number> = []
  const pay = Skill.make("pay", {
    description: "Pays",
    input: Schema.Struct({ amount: Schema.Finite }),
    execute: ({ amount }) => Effect.sync(() => paid.push(amount)).pipe(Effect.as(`paid ${amount}`))
  })
  return { pay, paid }
}

const layer = Layer.mergeAll(kernel(), Code.layerQuickJs())

/** The first message of a run that has this program. */
const program = (code: string) => JSON.stringify({ code })

const lead = (dialect: "tools" | "blocks") =>
  Agent.make({
    name: "lead",
    instructions: "",
    model: model("lead"),
    dialect,
    agents: [Code.agent({ skills: [customers, balance] })]
  })

describe("an agent that runs programs", () => {
  it.effect("calls its skills as functions, those that wait together in one reply", () =>
    Effect.gen(function* () {
      const source = `
        const { rows } = await customers()
        const sums: number[] = await Promise.all(rows.map(({ id }: { id: number }) => balance({ id })))
        console.log(rows[0].since)
        return sums.reduce((a, b) => a + b, 0)`
      const code = Code.agent({ skills: [customers, balance] })
      const { output } = yield* Kernel.run(code, program(source), { runId: "run" })
      assert.deepStrictEqual(output, { result: 30, log: "1970-01-01T00:00:00.001Z\n" })
      assert.deepStrictEqual(
        (yield* stored("run")).turns.map(({ completed }) => completed.map(({ name }) => name)),
        [["customers"], ["balance", "balance"], []]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("is called with native tools as { code }, and shows its functions with their types", () =>
    Effect.gen(function* () {
      const { provider, requests } = voices({ lead: [call("code", { code: "return await balance({ id: 4 })" }), "40"] })
      yield* Kernel.run(lead("tools"), "?", { provider })
      assert.deepStrictEqual(lastAsked(requests, "lead"), [`{"result":40}`])
      const [tool] = requests[0]?.tools ?? []
      assert.deepStrictEqual(tool?.inputSchema["properties"], { code: { type: "string" } })
      assert.deepStrictEqual(tool?.description.split("\n").slice(1), [
        "/** Lists the customers */",
        "declare function customers(input: { city?: string }): Promise<{ rows: Array<{ id: number; since: string }> }>",
        "/** Returns the balance of a customer */",
        "declare function balance(input: { id: number }): Promise<number>"
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("reads the program from the content of a block as it stands, also from a fence of Markdown", () =>
    Effect.gen(function* () {
      const source = `return (await customers()).rows.filter((row) => row.id < 2 && "</b>" !== "&lt;").length`
      const block = (content: string) => `<block type="command" name="code">${content}</block>`
      const { provider, requests } = voices({
        lead: [block(source), block(`\n\`\`\`ts\n${source}\n\`\`\`\n`), `<block type="final">1</block>`]
      })
      yield* Kernel.run(lead("blocks"), "?", { provider })
      const results = lastAsked(requests, "lead").filter((text) => text.includes(`type="result"`))
      assert.deepStrictEqual(
        results,
        [0, 1].map(() => `<block type="result" name="code">{"result":1}</block>`)
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("fails with the line, its text and the calls that had run, which the model reads", () =>
    Effect.gen(function* () {
      const source =
        "const { rows } = await customers()\nawait balance({ id: 1 })\nawait balance({ id: 2 })\nreturn rows[5].id"
      const { provider, requests } = voices({ lead: [call("code", { code: source }), "sorry"] })
      yield* Kernel.run(lead("tools"), "?", { provider })
      assert.deepStrictEqual(lastAsked(requests, "lead")[0]?.split("\n"), [
        "the program 'code' failed: TypeError: cannot read property 'id' of undefined",
        "  at line 4: return rows[5].id",
        "Calls that had run: customers, balance ×2"
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("shows the signature of a function whose input does not fit, as an error that the program can catch", () =>
    Effect.gen(function* () {
      const source = `try { await balance({ id: "four" }) } catch (error) { return [error.name, error.message] }`
      const { output } = yield* Kernel.run(Code.agent({ skills: [balance] }), program(source))
      assert.include(JSON.stringify(output), "InvalidArguments")
      assert.include(JSON.stringify(output), "declare function balance(input: { id: number })")
    }).pipe(Effect.provide(layer))
  )

  it.effect("calls agents as functions, with their typed input and answer", () =>
    Effect.gen(function* () {
      const twice = Program.make("twice", {
        input: Schema.Struct({ of: Schema.Finite }),
        output: Schema.Finite,
        run: ({ of }) => Effect.succeed(of * 2)
      })
      const echo = Program.make("echo", { run: (text) => Effect.succeed(`you said ${text}`) })
      const source = `return Promise.all([twice({ of: 21 }), echo("hello")])`
      const { output } = yield* Kernel.run(Code.agent({ agents: [twice, echo] }), program(source))
      assert.deepStrictEqual(output.result, [42, "you said hello"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("finds functions by words that its description has no room for", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 200 }, (_, index) =>
        Skill.make(`report-${index}`, {
          description: index === 150 ? "Counts the penguins" : `Returns report ${index}`,
          input: Schema.Struct({}),
          effects: "read",
          execute: () => Effect.succeed(index)
        })
      )
      const code = Code.agent({ skills: many, listedTokens: 200 })
      assert.isBelow(code.description?.length ?? Infinity, 1_500)
      assert.include(code.description, `more functions: \`return await search("words")\``)
      const source = `return [await search("penguins"), await report_150()]`
      const { output } = yield* Kernel.run(code, program(source))
      const declaration = "/** Counts the penguins */\ndeclare function report_150(): Promise<any>"
      assert.deepStrictEqual(output.result, [declaration, 150])
    }).pipe(Effect.provide(layer))
  )

  it.effect("stops for a person at any call, and continues with its recorded calls, time and chance", () =>
    Effect.gen(function* () {
      const { paid, pay } = payer()
      const code = Code.agent({ skills: [balance, pay] })
      const source = `
        const before = [Date.now(), Math.random()]
        const amount = await balance({ id: 3 })
        const receipt = await pay({ amount })
        return [receipt, before.join() === [Date.now(), before[1]].join()]`
      const asked = yield* Effect.flip(Kernel.run(code, program(source), { runId: "run" }))
      assert.strictEqual(asked._tag, "RunPaused")
      const [question] = yield* Kernel.questions("run")
      assert.deepInclude(question, { name: "pay", input: { amount: 30 } })
      const answers = [{ callId: question?.callId ?? "", approved: true }]
      const { output } = yield* Kernel.resume(code, "run", { answers })
      assert.deepStrictEqual([output.result, paid], [["paid 30", true], [30]])
    }).pipe(
      Effect.provide(
        Layer.provideMerge(
          layer,
          Policy.layer(({ name }) => Effect.succeed(name === "pay" ? Policy.confirm("really?") : Policy.allowed))
        )
      )
    )
  )

  it.effect("ends a program when its run stops, at an answer or at a question", () =>
    Effect.gen(function* () {
      const open: Array<string> = []
      const interpreter = Layer.succeed(CodeInterpreter.CodeInterpreter, {
        open: ({ source }) =>
          Effect.acquireRelease(
            Effect.sync((): CodeInterpreter.CodeExecution => {
              open.push(source)
              const calls = source === "pay" ? [{ name: "pay", input: { amount: 1 } }] : []
              const end = { _tag: "Returned", value: source, log: "" } as const
              return { next: () => Effect.succeed(calls.length > 0 ? { _tag: "Calls", calls } : end) }
            }),
            () => Effect.sync(() => open.pop())
          )
      })
      const code = Code.agent({ skills: [payer().pay] })
      const result = yield* Effect.provide(Kernel.run(code, program("nothing")), interpreter)
      assert.deepStrictEqual([result.output, open], [{ result: "nothing" }, []])
      const asked = yield* Effect.flip(Effect.provide(Kernel.run(code, program("pay")), interpreter))
      assert.deepStrictEqual([asked._tag, open], ["RunPaused", []])
    }).pipe(
      Effect.provide(
        Layer.provideMerge(
          kernel(),
          Policy.layer(() => Effect.succeed(Policy.confirm("really?")))
        )
      )
    )
  )

  it.effect("lets a program catch the call that a policy denies", () =>
    Effect.gen(function* () {
      const { paid, pay } = payer()
      const source = `return await pay({ amount: 1 }).catch((error) => error.name)`
      const { output } = yield* Kernel.run(Code.agent({ skills: [pay] }), program(source))
      assert.deepStrictEqual([output.result, paid], ["Denied", []])
    }).pipe(
      Effect.provide(
        Layer.provideMerge(
          layer,
          Policy.layer(() => Effect.succeed(Policy.denied("not here")))
        )
      )
    )
  )

  it.effect("refuses a program that is too long before it runs", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(Kernel.run(Code.agent({}), program(`return "${"é".repeat(40_000)}"`)))
      assert.deepInclude(failed, { _tag: "ProgramFailed", error: "CodeFailed" })
      assert.include(failed.message, "longer than 65536 bytes")
    }).pipe(Effect.provide(layer))
  )
})
