/** Programs as a model might write them, made at random: calls one after the other and at once, failures and chance. */
import { Duration, Effect, Layer, Schema } from "effect"
import { newQuickJSWASMModuleFromVariant, type QuickJSWASMModule } from "quickjs-emscripten-core"
import { CodeInterpreter, Policy, Skill, SkillRegistry } from "kernai"
import { Code } from "kernai/code"
import { MockProvider } from "kernai/testing"
import { Execution } from "../../src/code/internal/quickJsExecution.ts"
import { settledOf, stepOf } from "../../src/code/internal/quickJsThreads.ts"
import { randomOf } from "./random.ts"

const number = Schema.Struct({ of: Schema.Finite })

const read = Skill.make("read", {
  description: "Reads",
  input: number,
  output: Schema.Finite,
  effects: "read",
  execute: ({ of }) => Effect.as(Effect.sleep(of), of + 1)
})
const pay = Skill.make("pay", { description: "Pays", input: number, execute: ({ of }) => Effect.succeed({ paid: of }) })
const refuse = Skill.make("refuse", {
  description: "Fails",
  input: number,
  effects: "idempotent",
  execute: ({ of }) => Effect.fail({ _tag: "Refused", message: `no ${of}` })
})

/** An expression that gives a number. */
const expression = (next: () => number, depth: number): string => {
  const of = Math.floor(next() * 100)
  const kind = depth === 0 ? next() * 0.6 : next()
  const part = () => expression(next, depth - 1)
  if (kind < 0.2) return `(await read({ of: ${of} }))`
  if (kind < 0.35) return `(await pay({ of: ${of} }).then(({ paid }) => paid, () => -1))`
  if (kind < 0.45) return `(await refuse({ of: ${of} }).catch(({ message }) => message.length))`
  if (kind < 0.6) return `(await read({ of: Math.floor(Math.random() * 100) + (Date.now() % 7) }))`
  if (kind < 0.8)
    return `(await Promise.all([async () => ${part()}, async () => ${part()}].map((run) => run()))).reduce(sum)`
  if (kind < 0.9) return `(await loop(async () => ${part()}))`
  return `(${part()} + ${part()})`
}

/** A program made from a number. */
const sourceOf = (seed: number): string => {
  const next = randomOf(seed)
  const lines = Array.from({ length: 1 + Math.floor(next() * 3) }, () => `total += ${expression(next, 2)}`)
  return [
    "const sum = (a: number, b: number) => a + b",
    "const loop = async (run: () => Promise<number>) => { let all = 0; for (let i = 0; i < 2; i++) all += await run(); return all }",
    "let total = 0",
    ...lines,
    "return total"
  ].join("\n")
}

/** A module of its own for each program, which releases nothing before its end. */
const quickJs = Effect.promise(() => newQuickJSWASMModuleFromVariant(import("@jitl/quickjs-ng-wasmfile-release-sync")))

/** Returns the interpreter without its threads, which do not wait on a virtual clock. */
const withoutThreads = (quickJs: QuickJSWASMModule) =>
  Layer.succeed(CodeInterpreter.CodeInterpreter, {
    open: ({ limits: { cpuTime, ...limits }, ...code }) =>
      Effect.sync(() => {
        const program = { ...code, ...limits, cpuMillis: Duration.toMillis(cpuTime) }
        const execution = new Execution(program, quickJs.newRuntime())
        return {
          next: (results) => Effect.suspend(() => Effect.fromResult(stepOf(execution.next(results.map(settledOf)))))
        }
      })
  })

/** A random program as the subject of a crash matrix: payments need an agreement, which a person gives or refuses. */
export const codeSubject = (seed: number) =>
  Effect.map(quickJs, (quickJs) => ({
    agent: Code.agent({ name: `code-${seed}`, skills: [read, pay, refuse] }),
    input: JSON.stringify({ code: sourceOf(seed) }),
    layer: Layer.mergeAll(
      SkillRegistry.layer(),
      MockProvider.layer(),
      withoutThreads(quickJs),
      Policy.layer(({ input, name }) =>
        Effect.succeed(
          name === "pay" && Schema.is(number)(input) && input.of % 2 === 0 ? Policy.confirm("pay?") : Policy.allowed
        )
      )
    )
  }))
