import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { Agent, Kernel, KernelError, Message, Middleware, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { inspect } from "node:util"
import { kernel, ports } from "./support/kernel.ts"

class Audit extends Context.Service<Audit, { readonly note: (text: string) => Effect.Effect<void> }>()("test/Audit") {}

const noted: Array<string> = []
const audit = Layer.succeed(Audit, {
  note: (text: string) =>
    Effect.sync(() => {
      noted.push(text)
    })
})

const echo = Skill.make("echo", {
  description: "",
  input: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) =>
    Effect.sync(() => {
      noted.push(`ran ${text}`)
      return text
    })
})
const agent = Agent.make({ instructions: "", model: { id: "m", capabilities: ["text"] }, skills: [echo] })

const run = (middleware: Layer.Layer<never>) => {
  noted.length = 0
  const mock = MockProvider.make(`<block type="command" name="echo">hey</block>`, `<block type="final">done</block>`)
  const kernel = Kernel.layer.pipe(Layer.provide(middleware), Layer.provide([MockProvider.layerOf(mock), ports(echo)]))
  return Kernel.run(agent, "go").pipe(Effect.provide(kernel))
}

const noting = (who: string) =>
  Middleware.layerTool((toolRun, next) =>
    Effect.gen(function* () {
      const { note } = yield* Audit
      yield* note(`${who}: ${toolRun.call.name}`)
      const result = yield* next(toolRun)
      yield* note(`${who}: done`)
      return result
    })
  ).pipe(Layer.provide(audit))

describe("Middleware.layerTool", () => {
  it.effect("wraps calls with its own services, inside existing middleware (DR-23)", () =>
    Effect.gen(function* () {
      const result = yield* run(Layer.provideMerge(noting("inner"), noting("outer")))
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(noted, ["outer: echo", "inner: echo", "ran hey", "inner: done", "outer: done"])
    })
  )

  it.effect("fails the run with its own failure, before the call if it fails there", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(run(Middleware.layerTool(() => Effect.fail("the vault is closed"))))
      assert.deepStrictEqual(
        error,
        new KernelError.ExtensionFailed({ extension: "callTool", detail: "the vault is closed" })
      )
      assert.deepStrictEqual(noted, [])
    })
  )

  it.effect("fails the run with keys removed from its failure (S-7)", () =>
    Effect.gen(function* () {
      const failing = Middleware.layerTool(() => Effect.fail("refused Bearer sk-SECRET-0123456789abcdef"))
      const error = yield* Effect.flip(run(failing))
      assert.strictEqual(error.message, "callTool failed: refused Bearer <redacted>")
      assert.notInclude(inspect(error, { depth: null, showHidden: true }), "SECRET")
    })
  )

  it.effect("ends the run deliberately with a termination (CP-16)", () =>
    Effect.gen(function* () {
      const stop = new KernelError.MiddlewareTermination({ reason: "too many calls" })
      const error = yield* Effect.flip(run(Middleware.layerTool(() => Effect.fail(stop))))
      assert.deepStrictEqual(error, stop)
      assert.deepStrictEqual(noted, [])
    })
  )

  it.effect("receives its run, also beside middleware that wraps no calls (DR-23)", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const watching = Middleware.layerTool((toolRun, next) => {
        const { context, messages, rootRunId, runId, step } = toolRun
        seen.push([runId, rootRunId, step, context, messages.map(Message.text)])
        return next(toolRun)
      })
      const say = (text: string) => `<block type="command" name="echo">${text}</block>`
      const mock = MockProvider.make(say("hey"), say("ho"), `<block type="final">done</block>`)
      const other = Middleware.layer({ callModel: (call, next) => next(call) })
      const options = { provider: mock, runId: "run", context: { who: "Ada" } }
      yield* Kernel.run(agent, "go", options).pipe(Effect.provide([kernel(echo), Layer.provideMerge(other, watching)]))
      const heard = ["go", say("hey"), `<block type="result" name="echo">hey</block>`]
      assert.deepStrictEqual(seen, [
        ["run", "run", 0, { who: "Ada" }, heard.slice(0, 1)],
        ["run", "run", 1, { who: "Ada" }, heard]
      ])
    })
  )
})
