/**
 * instructions.json: which sections an agent reads, by what it can do (BP-160 to BP-163).
 *
 * The words are ours; what is checked is which sections are there, which
 * built-ins are mentioned and which media are named.
 */
import { assert, describe, it } from "@effect/vitest"
import * as InstructionBuilder from "../../src/InstructionBuilder.ts"
import { about, load, tally } from "../support/vectors.ts"

interface Expected {
  readonly exactly_base: boolean
  readonly block_rules: boolean
  readonly mentions: ReadonlyArray<string>
  readonly multimodal_inputs: unknown
  readonly multimodal_outputs: unknown
  readonly sections: ReadonlyArray<string>
}

interface Vector {
  readonly id: string
  readonly protocol_registered: boolean
  readonly skills: string
  readonly protocols: string
  readonly workflow_enabled: boolean
  readonly capabilities: string | ReadonlyArray<string>
  readonly expected: Expected
}

type Capability = InstructionBuilder.Options["model"]["capabilities"][number]

const base = "BASE INSTRUCTIONS"

/** The one registered protocol, seen through the agent's list (BP-161). */
const visible = (vector: Vector): ReadonlyArray<string> | undefined => {
  const lists = new Map([
    ["nil", ["fake"]],
    ["empty", []],
    ["match", ["fake"]],
    ["other", []]
  ])
  const list = lists.get(vector.protocols)
  return list === undefined || vector.protocol_registered ? list : []
}

const words: ReadonlyArray<Capability> = [
  "text",
  "vision",
  "audio_in",
  "video_in",
  "document_in",
  "image_gen",
  "audio_out"
]

const capabilities = (vector: Vector): ReadonlyArray<Capability> | undefined => {
  const given = typeof vector.capabilities === "string" ? vector.capabilities.split(/[^a-z_]+/) : vector.capabilities
  const known = words.filter((word) => given.includes(word))
  if (known.length === given.length) return known
  // One word that is no capability names them together: "all", "multimodal".
  return given.length === 1 ? words : undefined
}

/** The media a section names, or nothing without the section. */
const mediaNamed = (text: string, heading: string): ReadonlyArray<string> => {
  const section = text.split(/^(?=## )/m).find((part) => part.startsWith(heading)) ?? ""
  const sentence = section.slice(heading.length).split(".")[0] ?? ""
  return ["image", "audio", "video", "document"].filter((kind) => sentence.includes(kind))
}

const mediaExpected = (expected: unknown): ReadonlyArray<string> =>
  ["image", "audio", "video", "document"].filter((kind) => (JSON.stringify(expected) ?? "").includes(kind))

const file = load<{ readonly vectors: ReadonlyArray<Vector> }>("instructions", {
  vectors: [
    {
      ...about,
      protocol_registered: true,
      skills: true,
      protocols: true,
      workflow_enabled: true,
      capabilities: true,
      expected: {
        exactly_base: true,
        block_rules: true,
        mentions: true,
        multimodal_inputs: true,
        multimodal_outputs: true,
        sections: true
      }
    }
  ]
})

/** A vector of ours: all that a model can take and make, in one word. */
const multimodal: Vector = {
  id: "instr-multimodal",
  protocol_registered: false,
  skills: "all",
  protocols: "nil",
  workflow_enabled: false,
  capabilities: "multimodal",
  expected: {
    exactly_base: false,
    block_rules: true,
    mentions: ["/skills"],
    multimodal_inputs: ["image", "audio", "video", "document"],
    multimodal_outputs: ["image", "audio"],
    sections: ["## RESPONSE FORMAT (non-negotiable)", "## MULTIMODAL INPUTS", "## MULTIMODAL OUTPUTS"]
  }
}

describe("instructions.json", () => {
  const counted = tally("instructions")
  for (const vector of [...file.vectors, multimodal]) {
    const protocols = visible(vector)
    const known = capabilities(vector)
    if (protocols === undefined || known === undefined) {
      counted.skip(vector.id)
      continue
    }
    it(`${vector.id}: skills ${vector.skills}, protocols ${vector.protocols}, ${JSON.stringify(vector.capabilities)}`, () => {
      const text = InstructionBuilder.build({
        base,
        // One predicate for the rules and the stall (BP-42).
        canAct: vector.skills !== "nil" || protocols.length > 0,
        protocols,
        root: vector.workflow_enabled,
        model: { id: "test-model", capabilities: known }
      })
      const { expected } = vector
      assert.isTrue(text.startsWith(base))
      assert.strictEqual(text === base, expected.exactly_base)
      assert.strictEqual(text.includes("RESPONSE FORMAT"), expected.block_rules)
      assert.deepStrictEqual(
        ["/skills", "/protocols", "/workflow", "/tasks"].filter((word) => text.includes(word)),
        [...expected.mentions]
      )
      assert.deepStrictEqual(text.match(/^## .*$/gm) ?? [], [...expected.sections])
      assert.deepStrictEqual(mediaNamed(text, "## MULTIMODAL INPUTS"), mediaExpected(expected.multimodal_inputs))
      assert.deepStrictEqual(mediaNamed(text, "## MULTIMODAL OUTPUTS"), mediaExpected(expected.multimodal_outputs))
    })
    counted.ran()
  }
  counted.report()
})
