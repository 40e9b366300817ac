/** Programs of both kinds that one runtime records and another replays: their calls depend on all that they compute. */
import { Clock, DateTime, Effect, Layer, Random, Result, Schema } from "effect"
import { Kernel, Program, RunCodec, RunStore, Skill } from "kernai"
import { Code } from "kernai/code"
import { MockProvider, Replay } from "kernai/testing"
import { kernel } from "../support/kernel.ts"

const noted = Skill.make("note", {
  description: "Notes",
  input: Schema.Struct({ text: Schema.String }),
  execute: () => Effect.succeed("noted")
})

const steps = Program.make("steps", {
  skills: [noted],
  run: Effect.fnUntraced(function* () {
    const dice = yield* Effect.forEach([6, 20, 1_000], (sides) => Random.nextIntBetween(1, sides))
    const shuffled = yield* Random.shuffle(["a", "b", "c", "d", "e"])
    const text = [...dice, ...shuffled, yield* Clock.currentTimeMillis, DateTime.formatIso(yield* DateTime.now)].join()
    const parts = ["one", "two"].map((name) => Program.call(noted, { text: `${name} ${text}` }))
    yield* Effect.all(parts, { concurrency: "unbounded" })
    return yield* Program.step("last", Effect.succeed(shuffled.join("")))
  })
})

/** What could differ between runtimes: time and its zone, chance, floating point, order, texts. */
const source = `
  const words = ["Zebra", "apple", "Äpfel", "zoo", "10", "9"]
  const found = [
    Date.now(), new Date().getHours(), String(new Date(2024, 2, 31, 2, 30)), Math.random(), Math.random(),
    Math.sin(1e6), Math.exp(1.5), Math.pow(2, 0.5), 0.1 + 0.2, (1234.5).toFixed(3), (0.1).toString(3),
    words.sort(), words.map((word) => word.toUpperCase().normalize("NFD").length), "Straße".localeCompare("strasse"),
    Object.keys({ b: 1, 2: 1, a: 1, 1: 1 }), [3, 1, 2].sort(() => 0), "x".codePointAt(0), /(?<y>\\d+)/.exec("a12").groups
  ]
  await note({ text: JSON.stringify(found) })
  return found.length
`

const code = Code.agent({ skills: [noted] })

const layer = Layer.mergeAll(Layer.provideMerge(kernel(), MockProvider.layer()), Code.layerQuickJs())

/** The records of each program, as lines. */
const Tapes = Schema.fromJsonString(
  Schema.Struct({ steps: Schema.Array(Schema.String), code: Schema.Array(Schema.String) })
)

/** Runs the programs, and returns their records as text. */
export const record = Effect.gen(function* () {
  yield* Kernel.run(steps, "go", { runId: "steps" })
  yield* Kernel.run(code, JSON.stringify({ code: source }), { runId: "code" })
  const lines = (runId: string) =>
    Effect.flatMap(RunStore.recordsOf(runId), (records) =>
      Effect.fromResult(Result.all(records.map(RunCodec.encodeRecord)))
    )
  return yield* Schema.encodeEffect(Tapes)({ steps: yield* lines("steps"), code: yield* lines("code") })
}).pipe(Effect.provide(layer))

/** Replays the programs of such a text. Fails where they differ here. */
export const replay = Effect.fnUntraced(function* (text: string) {
  const tapes = yield* Schema.decodeEffect(Tapes)(text)
  const records = (lines: ReadonlyArray<string>) =>
    Effect.fromResult(Result.all(lines.map(RunCodec.make().decodeRecord)))
  yield* Replay.run(steps, { runId: "steps", records: yield* records(tapes.steps) })
  yield* Replay.run(code, { runId: "code", records: yield* records(tapes.code) })
}, Effect.provide(layer))
