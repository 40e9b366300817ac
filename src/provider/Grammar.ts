/**
 * The language an agent may speak, as a grammar derived from its callables.
 *
 * A server that constrains decoding by a grammar (llama.cpp, vLLM, Ollama) then cannot produce a malformed reply: an
 * unknown skill, a missing parameter, a block that is never closed. `toGbnf` and `sampler` use the same productions, so
 * tests sample exactly the language that is sent. Constraints that productions cannot express (`multipleOf`, unique
 * items) are left to the skill's own Schema.
 *
 * @since 0.1.0
 */

import type { AnyProtocol } from "../Protocol.ts"
import type { ReplyGrammar } from "../Provider.ts"
import type { AnySkill } from "../Skill.ts"
import * as Blocks from "../Block.ts"
import * as Gbnf from "./internal/grammar/gbnf.ts"
import * as JsonRules from "./internal/grammar/jsonRules.ts"
import { perObject } from "../kit/perObject.ts"
import type { JsonObject } from "../kit/json.ts"
import { isJsonObject, type Json } from "../kit/json.ts"
import * as Productions from "./internal/grammar/productions.ts"
import type { Node } from "./internal/grammar/productions.ts"
import {
  chars,
  choice,
  empty,
  except,
  optional,
  repeat,
  rule,
  Rules,
  sequence,
  text
} from "./internal/grammar/productions.ts"
import { Sampler } from "./internal/grammar/sampler.ts"

// ---------------------------------------------------------------- models

/**
 * Productions by name.
 *
 * @category models
 * @since 0.1.0
 */
export interface Grammar extends Productions.Grammar {}

/**
 * The callables and the answer of a language.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The skills that may be called. */
  readonly skills: ReadonlyArray<Pick<AnySkill, "name" | "inputSchema">>
  readonly protocols?: ReadonlyArray<Pick<AnyProtocol, "name">> | undefined
  /** True if a workflow may be started. Only root runs may start one. */
  readonly workflows?: boolean | undefined
  /** The agents that tasks of a workflow may name. Default: none. */
  readonly agents?: ReadonlyArray<string> | undefined
  /** JSON Schema of a typed answer. */
  readonly output?: JsonObject | undefined
}

/**
 * Draws texts of a language.
 *
 * @category models
 * @since 0.1.0
 */
export interface Drawn {
  /** Returns another text. */
  readonly next: () => string
  /** Returns the alternatives that were never taken, as `rule: number`. */
  readonly untaken: () => ReadonlyArray<string>
}

// ---------------------------------------------------------------- constructors

/**
 * Creates the grammar of an agent that can act: reasoning, then commands and protocol requests, an answer, or a
 * workflow.
 *
 * Text outside blocks is not part of it, so the model reasons in a plan block. Names that cannot stand in a tag are
 * left out. For agents with `grammar: true` the kernel passes this grammar to the provider.
 *
 * @example
 * const grammar = Grammar.make({ skills: [search] })
 * const text = Grammar.toGbnf(grammar) // root ::= …
 * const reply = Grammar.sampler(grammar, 1).next() // <block type="command" name="search">{"query": …
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Grammar => {
  const rules = new Rules()
  rules.map.set("root", empty)
  const calls = [
    ...options.skills
      .filter(({ name }) => isTagged(name))
      .map((skill) =>
        rules.add(
          `command-${skill.name}`,
          tagged("command", skill.name, JsonRules.fitting(rules, skill.inputSchema, `input-${skill.name}`))
        )
      ),
    rules.add("builtin", choice(...builtins.map((name) => tagged("command", name, empty)))),
    ...(options.protocols ?? [])
      .filter(({ name }) => isTagged(name))
      .map(({ name }) => rules.add(`request-${name}`, tagged(name, null, content(rules))))
  ]
  const call = rules.add("call", choice(...calls))
  const calling = rules.add("calling", sequence(call, repeat(sequence(gap, call), 0)))
  const answer = options.output === undefined ? content(rules) : JsonRules.fitting(rules, options.output, "answer")
  const final = rules.add("final", tagged("final", null, answer))
  const thought = rules.add("thought", tagged("plan", null, sequence(beginning, content(rules))))
  const reply = sequence(optional(sequence(thought, gap)), choice(calling, final))
  const workflow = () =>
    rules.add("workflow", tagged("plan", null, JsonRules.fitting(rules, planSchema(options), "plan")))
  rules.map.set("root", options.workflows === true ? choice(reply, workflow()) : reply)
  return pruned(rules)
}

/**
 * Creates the grammar of the JSON that fits a JSON Schema: the answers of an agent that cannot act.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromJsonSchema = (schema: JsonObject): Grammar => {
  const rules = new Rules()
  rules.map.set("root", JsonRules.fitting(rules, schema, "json"))
  return pruned(rules)
}

/** Removes unused rules. If nothing fits the schema, the only text is the empty one. */
const pruned = (rules: Rules): Grammar =>
  Productions.grammar("root", rules.map) ?? { root: "root", rules: new Map([["root", empty]]) }

// ---------------------------------------------------------------- forms

/**
 * Writes a grammar as GBNF.
 *
 * @category forms
 * @since 0.1.0
 */
export const toGbnf = (grammar: Grammar): string => Gbnf.render(grammar)

/**
 * Returns the language in its JSON form `{"blocks": [{"type", "name", "content"}]}`, for servers that only accept a
 * JSON Schema. The markup `json` reads it (see `Dialect.Markup`).
 *
 * @category forms
 * @since 0.1.0
 */
export const toJsonSchema = (options: Options): JsonObject => {
  const definitions = new Map<string, Json>()
  const hoisted = (schema: JsonObject, name: string) => hoist(schema, name, definitions)
  const items = [
    ...options.skills.map((skill) => block("command", skill.name, hoisted(skill.inputSchema, skill.name))),
    ...builtins.map((name) => block("command", name, words(""))),
    ...(options.protocols ?? []).map(({ name }) => block(name, undefined, { type: "string" })),
    block("plan", undefined, { type: "string" }),
    ...(options.workflows === true ? [block("plan", undefined, planSchema(options))] : []),
    block("final", undefined, options.output === undefined ? { type: "string" } : hoisted(options.output, "final"))
  ]
  return {
    type: "object",
    properties: { blocks: { type: "array", minItems: 1, items: { anyOf: items } } },
    required: ["blocks"],
    additionalProperties: false,
    ...(definitions.size === 0 ? {} : { $defs: Object.fromEntries(definitions) })
  }
}

/**
 * Returns the language as structural tags for vLLM: free text, in which the content of a command fits its skill.
 *
 * @category forms
 * @since 0.1.0
 */
export const toStructuralTag = (options: Options): JsonObject => ({
  type: "structural_tag",
  structures: [
    ...options.skills
      .filter(({ name }) => isTagged(name))
      .map((skill) => ({ begin: opening("command", skill.name), schema: skill.inputSchema, end: closing })),
    ...(options.output === undefined ? [] : [{ begin: opening("final", null), schema: options.output, end: closing }])
  ],
  triggers: ['<block type="command" name="', ...(options.output === undefined ? [] : [opening("final", null)])]
})

/**
 * Returns the grammar of a reply as GBNF, for llama.cpp and the `structured_outputs` of vLLM. Cached per value.
 *
 * @category forms
 * @since 0.1.0
 */
export const gbnfOf: (reply: ReplyGrammar) => string = perObject((reply) => {
  switch (reply._tag) {
    case "Blocks":
      return toGbnf(make(reply))
    case "Json":
      return toGbnf(fromJsonSchema(reply.schema))
    case "Gbnf":
      return reply.text
  }
})

/**
 * Returns the grammar of a reply as JSON Schema, of the answer or of blocks in their JSON form. Undefined for a custom
 * GBNF. Cached per value.
 *
 * @category forms
 * @since 0.1.0
 */
export const jsonSchemaOf: (reply: ReplyGrammar) => JsonObject | undefined = perObject((reply) => {
  switch (reply._tag) {
    case "Blocks":
      return toJsonSchema(reply)
    case "Json":
      return reply.schema
    case "Gbnf":
      return undefined
  }
})

/**
 * Returns the grammar of a reply as structural tags. Undefined for anything but blocks. Cached per value.
 *
 * @category forms
 * @since 0.1.0
 */
export const structuralTagOf: (reply: ReplyGrammar) => JsonObject | undefined = perObject((reply) =>
  reply._tag === "Blocks" ? toStructuralTag(reply) : undefined
)

/**
 * Creates a sampler that draws texts at random, the same ones for the same seed. Alternatives taken least often come
 * first, so that all are taken soon; texts stay small.
 *
 * @category drawing
 * @since 0.1.0
 */
export const sampler = (grammar: Grammar, seed: number): Drawn => new Sampler(grammar, seed)

// ---------------------------------------------------------------- blocks

const builtins = ["/skills", "/workflow", "/tasks", "/protocols"]

const closing = "</block>"

const opening = (type: string, name: string | null) => `<block type="${type}"${name === null ? "" : ` name="${name}"`}>`

const tagged = (type: string, name: string | null, inner: Node): Node =>
  sequence(text(opening(type, name)), inner, text(closing))

/** Returns true if a name can be written in a tag and read back unchanged. */
const isTagged = (name: string): boolean =>
  name !== "" && !name.includes('"') && name.isWellFormed() && Blocks.strip(name) === name

const gap: Node = optional(text("\n"))

// Text that is not JSON and does not look like it is prose, not a plan.
const beginning: Node = chars(
  ...except(
    [0, 0x20],
    [0x22, 0x22],
    [0x2d, 0x2d],
    [0x2f, 0x39],
    [0x3c, 0x3c],
    [0x5b, 0x5b],
    [0x60, 0x60],
    [0x66, 0x66],
    [0x6e, 0x6e],
    [0x74, 0x74],
    [0x7b, 0x7b],
    [0x7f, 0xa0],
    [0xfeff, 0xfeff]
  )
)

/**
 * Text that neither closes its block nor opens one inside it: a state machine over prefixes of `</block>` and `<block`,
 * with a rule for each state.
 */
const content = (rules: Rules): Node => {
  const less = rule("content-less")
  const contentExcept = (codes: ReadonlyArray<string>, ...ways: ReadonlyArray<Node>): Node =>
    choice(
      empty,
      sequence(
        chars(
          ...except(
            [0, 0],
            [0x3c, 0x3c],
            ...codes.map((letter): Productions.Range => [letter.charCodeAt(0), letter.charCodeAt(0)])
          )
        ),
        rule("content")
      ),
      sequence(text("<"), less),
      ...ways
    )
  const word = (name: string, seen: string, letters: string, forbidden: ReadonlyArray<string>): Node => {
    const next = letters[0]
    return rules.shared(`content-${name}${seen}`, () =>
      next === undefined
        ? contentExcept(forbidden)
        : contentExcept([next], sequence(text(next), word(name, seen + next, letters.slice(1), forbidden)))
    )
  }
  return rules.shared("content", () => {
    rules.shared("content-less", () =>
      contentExcept(
        ["/", "b"],
        sequence(text("/"), word("end", "", "block", [">"])),
        sequence(text("b"), word("b", "", "lock", [">", " ", "\t", "\n", "\v", "\f", "\r"]))
      )
    )
    return contentExcept([])
  })
}

// ---------------------------------------------------------------- JSON form

const words = (value: string): JsonObject => ({ type: "string", enum: [value] })

const block = (type: string, name: string | undefined, content: Json): JsonObject => ({
  type: "object",
  properties: { type: words(type), ...(name === undefined ? {} : { name: words(name) }), content },
  required: name === undefined ? ["type", "content"] : ["type", "name", "content"],
  additionalProperties: false
})

/** Moves the definitions of a nested schema to the outer one, under its name. */
const hoist = (schema: JsonObject, name: string, definitions: Map<string, Json>): Json => {
  const text = JSON.stringify(schema)
  if (!text.includes('"$ref"')) return schema
  // Different names may become equal here, so the count keeps their prefixes apart.
  const prefix = `${name.replace(/[^A-Za-z0-9_-]/g, "_")}.${definitions.size}.`
  let isWhole = false
  const moved = (reference: string) => {
    if (/^#\/(?:\$defs|definitions)\//.test(reference)) return reference.replace(/^#\/[^/]*\//, `#/$defs/${prefix}`)
    if (!/^#(?:\/|$)/.test(reference)) return reference
    // The reference points to the schema as a whole, or to another place in it.
    isWhole = true
    return `#/$defs/${prefix}${reference.slice(1)}`
  }
  const {
    $defs,
    definitions: older,
    ...own
  }: JsonObject = JSON.parse(text, (key, value: Json) =>
    key === "$ref" && typeof value === "string" ? moved(value) : value
  )
  for (const table of [$defs, older]) {
    if (isJsonObject(table)) for (const [key, part] of Object.entries(table)) definitions.set(prefix + key, part)
  }
  if (isWhole) definitions.set(prefix, own)
  return own
}

const planSchema = ({ agents = [] }: Options): JsonObject => ({
  type: "object",
  properties: {
    goal: { type: "string" },
    strategy: { type: "string", enum: ["parallel", "sequential", "mixed"] },
    tasks: {
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        properties: {
          id: { type: "string", pattern: "^[A-Za-z0-9_-]{1,40}$" },
          input: { type: "string", pattern: "^[^\\x00\\s]" },
          parallel: { type: "boolean" },
          depends_on: { type: "array", items: { type: "string" } },
          ...(agents.length === 0 ? {} : { agent: { type: "string", enum: agents } })
        },
        required: ["id", "input"],
        additionalProperties: false
      }
    }
  },
  required: ["goal", "strategy", "tasks"],
  additionalProperties: false
})
