import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Kernel } from "kernai"
import { Code } from "kernai/code"
import { kernel } from "../support/kernel.ts"
import { manySkills, wishes } from "../support/manySkills.ts"

it.effect("the functions of 500 skills fit into the tokens of their list, and programs find the others by words", () =>
  Effect.gen(function* () {
    const code = Code.agent({ skills: manySkills, limits: { calls: wishes.length } })
    const listed = (code.description ?? "").length
    const left = Number(/^(\d+) more functions/m.exec(code.description ?? "")?.[1])
    const source = `return await Promise.all(${JSON.stringify(wishes)}.map(async ([words, name]) =>
      (await search(words)).split("\\n").findIndex((line) => line.startsWith("declare function " + name + "("))))`
    const { output } = yield* Kernel.run(code, JSON.stringify({ code: source }))
    const places: ReadonlyArray<unknown> = Array.isArray(output.result) ? output.result : []
    const found = places.filter((place) => Number(place) >= 0).length
    // The acceptance reads it. Four letters of code are a token, as vendors count it on average.
    console.log(
      `functions: ${wishes.length} wishes, ${found} found, ${Math.round(listed / 4)} tokens listed, ${left} left out`
    )
    assert.isAbove(left, 400)
    assert.isAtMost(listed / 4, 2_000)
    assert.isAtLeast(found, wishes.length * 0.9)
  }).pipe(Effect.provide(Layer.merge(kernel(), Code.layerQuickJs())))
)
