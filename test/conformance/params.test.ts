/**
 * params.json: the text of a command block as parameters, then validated (BP-68, BP-69, BP-86, BP-87).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Json } from "../../src/Content.ts"
import * as Skill from "../../src/Skill.ts"
import { inputs, scope } from "../support/skillSpec.ts"
import type { Validation } from "../support/validation.ts"
import { checkValidation, isExtension, validationKeys } from "../support/validation.ts"
import { about, load, tally } from "../support/vectors.ts"

interface Vector {
  readonly id: string
  readonly inputs: { readonly [name: string]: unknown }
  readonly content: string
  readonly parsed: { readonly [name: string]: Json }
  readonly validated: Validation
  readonly disputed?: unknown
}

const file = load<{ readonly vectors: ReadonlyArray<Vector> }>("params", {
  vectors: [{ ...about, inputs: true, content: true, parsed: true, validated: validationKeys }]
})

describe("params.json", () => {
  const counted = tally("params")
  for (const vector of file.vectors) {
    it.effect(`${vector.id}: ${JSON.stringify(vector.content)}`, () =>
      Effect.gen(function* () {
        const probe = Skill.make("probe", {
          description: "probe",
          input: inputs(vector.inputs),
          execute: (input) => Effect.succeed(input)
        })
        counted.ran()
        const parsed = probe.parameters(vector.content)
        // Ruby reads comments and keeps numbers of any size; strict JSON does not (BP-69).
        if (isExtension(vector.content)) return assert.isObject(parsed)
        assert.deepStrictEqual(parsed, vector.parsed)
        yield* checkValidation(probe.call(parsed, scope), vector.validated, parsed)
      })
    )
  }
  counted.report()
})
