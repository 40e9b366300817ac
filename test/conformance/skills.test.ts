/**
 * skills.json: validation of declared inputs, descriptions and listing (BP-84 to BP-94).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Json } from "../../src/Content.ts"
import { isRecord } from "../../src/kit/json.ts"
import * as Skill from "../../src/Skill.ts"
import * as SkillRegistry from "../../src/SkillRegistry.ts"
import { inputs, ourListing, scope } from "../support/skillSpec.ts"
import type { Validation } from "../support/validation.ts"
import { checkValidation, validationKeys } from "../support/validation.ts"
import { about, load, tally } from "../support/vectors.ts"

interface Specs {
  readonly [name: string]: unknown
}

interface Vectors {
  readonly validation: ReadonlyArray<{
    readonly id: string
    readonly inputs: Specs
    readonly params: { readonly [name: string]: Json } | null
    readonly expected: Validation
    readonly note?: string
  }>
  readonly descriptions: ReadonlyArray<{
    readonly spec: {
      readonly name: string
      readonly description?: string
      readonly inputs?: Specs
      readonly config?: { readonly [key: string]: { readonly type?: "string" | "integer"; readonly default?: string } }
      readonly credentials?: { readonly [key: string]: { readonly required?: boolean } }
    }
    readonly text: string
  }>
  readonly listing: { readonly registered: ReadonlyArray<string> }
}

const vectors = load<Vectors>("skills", {
  validation: [{ ...about, inputs: true, params: true, expected: validationKeys }],
  descriptions: [
    {
      ...about,
      spec: {
        name: true,
        description: true,
        inputs: true,
        config: { "*": { type: true, default: true, description: true } },
        credentials: { "*": { required: true, description: true } },
        // What a listing does not say.
        requires: true,
        produces: true
      },
      text: true
    }
  ],
  listing: { registered: true }
})

const echo = (name: string, specs: Specs, description = "") =>
  Skill.make(name, { description, input: inputs(specs), execute: (input) => Effect.succeed(input) })

/** A description of ours: defaults that are lists or hashes, as the recorded library writes them (BP-94). */
const structured: Vectors["descriptions"][number] = {
  spec: {
    name: "structured",
    inputs: {
      l: { type: "array", of: "string", default: ["a, b (c", "d"] },
      h: { type: "object", default: { a: 1, b: [null, "]"] } },
      e: { type: "array", default: [] }
    }
  },
  text: `- structured
  Inputs: l (Array<String>) default: ["a, b (c", "d"], h (Hash) default: {"a"=>1, "b"=>[nil, "]"]}, e (Array) default: []
  Usage: <block type="command" name="structured">{"l": "...", "h": "...", "e": "..."}</block>`
}

describe("skills.json", () => {
  const counted = tally("skills")

  for (const vector of vectors.validation) {
    it.effect(`${vector.id}: ${vector.note ?? JSON.stringify(vector.params)}`, () => {
      counted.ran()
      const probe = echo("probe", vector.inputs)
      return checkValidation(probe.call(vector.params ?? {}, scope), vector.expected, vector.params)
    })
  }

  for (const { spec, text } of [...vectors.descriptions, structured]) {
    it(`describes '${spec.name}'`, () => {
      counted.ran()
      const skill = Skill.make(spec.name, {
        description: spec.description ?? "",
        input: inputs(spec.inputs ?? {}),
        ...(spec.config === undefined ? {} : { config: spec.config }),
        ...(spec.credentials === undefined ? {} : { credentials: spec.credentials }),
        execute: () => Effect.succeed(null)
      })
      // Ruby writes a null default as nothing, and an empty text as we do.
      const isNull = Object.values(spec.inputs ?? {}).some((input) => isRecord(input) && input["default"] === null)
      const words = ourListing(text)
      const listing = isNull ? words.replace(/ default: (?=,|\n|$)/g, " default: null") : words
      assert.strictEqual(skill.listing, listing)
    })
  }

  it.effect("lists skills as registered", () => {
    counted.ran()
    const skills = vectors.listing.registered.map((name) => echo(name, {}))
    return Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const names = (yield* registry.all).map((skill) => skill.name)
      assert.deepStrictEqual(names, vectors.listing.registered)
    }).pipe(Effect.provide(SkillRegistry.layer(...skills)))
  })

  counted.report()
})
