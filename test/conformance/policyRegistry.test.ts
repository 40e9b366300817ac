/**
 * policy-registry.json: what a registry of three sources holds and gives, and what policies say (AC-12 to AC-19).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Result, Schema, type Scope, Stream } from "effect"
import { Agent, Content, Kernel, type Model, Policy, Skill, SkillRegistry } from "kernai"
import { SkillPack } from "kernai/file"
import { MockProvider } from "kernai/testing"
import * as McpNames from "../../src/mcp/internal/toolNames.ts"
import { about, type Keys, load, tally } from "../support/vectors.ts"

type JsonObject = { readonly [key: string]: Schema.Json }

interface InputSchema {
  readonly properties?: { readonly [field: string]: { readonly type?: string } }
  readonly required?: ReadonlyArray<string>
}

interface Entry {
  readonly source: "native" | "mcp" | "skill-pack"
  readonly name?: string
  readonly server?: string
  readonly tool?: string
  readonly description?: string
  readonly effects?: Skill.Effects
  readonly idempotent?: boolean
  readonly requires?: ReadonlyArray<Model.Capability>
  readonly schema?: InputSchema
  readonly inputSchema?: InputSchema
  readonly parameters?: InputSchema
  readonly returns?: Schema.Json
  readonly output?: Schema.Json
  readonly fails?: string
  readonly error?: string
  readonly throws?: string
  readonly dies?: string
}

/** A rule as the sources write it: its glob is `tool`. */
type SourceRule = Omit<Policy.Rule, "name"> & { readonly tool: string }

interface Rules {
  readonly deny?: ReadonlyArray<SourceRule>
  readonly confirm?: ReadonlyArray<SourceRule>
  readonly allow?: ReadonlyArray<SourceRule>
  readonly default?: string
  readonly hide?: string | ReadonlyArray<string>
  readonly failsWith?: string
}

interface Case {
  readonly id: string
  readonly title: string
  readonly register: ReadonlyArray<Entry>
  readonly agent?: { readonly skills?: "all" | null | ReadonlyArray<string> }
  readonly config?: { readonly allowedSkills?: ReadonlyArray<string>; readonly allowed_skills?: ReadonlyArray<string> }
  readonly model?: { readonly capabilities?: ReadonlyArray<Model.Capability> }
  readonly policy?: Rules
  readonly policies?: ReadonlyArray<Rules>
  readonly ask: {
    readonly op: string
    readonly name?: string
    readonly arguments?: JsonObject
    readonly expose?: "model" | "all"
  }
  readonly expect: { readonly [key: string]: unknown }
}

const rule: Keys = { tool: true, where: true, reason: true }

const rulesKeys: Keys = {
  deny: [rule],
  confirm: [rule],
  allow: [rule],
  default: true,
  hide: true,
  failsWith: true
}

const vectors = load<{ readonly cases: ReadonlyArray<Case> }>("policy-registry", {
  cases: [
    {
      ...about,
      register: [
        {
          source: true,
          name: true,
          server: true,
          tool: true,
          description: true,
          effects: true,
          idempotent: true,
          requires: true,
          schema: true,
          inputSchema: true,
          parameters: true,
          returns: true,
          output: true,
          fails: true,
          error: true,
          throws: true,
          dies: true
        }
      ],
      agent: { skills: true },
      config: { allowedSkills: true, allowed_skills: true },
      model: { capabilities: true },
      policy: rulesKeys,
      policies: [rulesKeys],
      ask: { op: true, name: true, arguments: true, expose: true },
      // What is expected is looked through case by case.
      expect: true
    }
  ]
})

// ---------------------------------------------------------------- the registry

/** The fields that a JSON Schema of plain types asks for. */
const inputOf = ({ properties, required }: InputSchema = {}) =>
  properties === undefined
    ? Schema.Record(Schema.String, Schema.Json)
    : Schema.Struct(
        Object.fromEntries(
          Object.entries(properties).map(([field, { type = "" }]) => {
            const known = types.get(type) ?? Schema.Json
            return [field, required?.includes(field) === true ? known : Schema.optionalKey(known)]
          })
        )
      )

const types = new Map<string, Schema.Codec<Schema.Json>>([
  ["string", Schema.String],
  ["integer", Schema.Int],
  ["number", Schema.Finite],
  ["boolean", Schema.Boolean]
])

const skillOf = (entry: Entry, name: string, entered: Array<string>): Skill.AnySkill =>
  Skill.make(name, {
    description: entry.description ?? name,
    input: inputOf(entry.inputSchema ?? entry.schema ?? entry.parameters),
    effects: entry.effects ?? (entry.idempotent === true ? "idempotent" : "write"),
    source: entry.source,
    ...(entry.requires === undefined ? {} : { requires: entry.requires }),
    execute: () =>
      Effect.suspend(() => {
        entered.push(name)
        const failure = entry.fails ?? entry.error
        const defect = entry.throws ?? entry.dies
        if (failure !== undefined) return Effect.fail(failure)
        if (defect !== undefined) return Effect.die(new Error(defect))
        const { output = `${name} ran`, returns = output } = entry
        return Effect.succeed(returns)
      })
  })

/** Registers in order, the tools of one server together where they follow each other. */
const register = Effect.fnUntraced(function* (
  registry: SkillRegistry.SkillRegistry["Service"],
  entries: ReadonlyArray<Entry>,
  entered: Array<string>
): Effect.fn.Return<void, SkillRegistry.ToolNameConflict | SkillRegistry.DefinitionInvalid, Scope.Scope> {
  for (let index = 0; index < entries.length;) {
    const entry = entries[index]
    if (entry === undefined) return
    if (entry.source === "skill-pack") {
      yield* registry
        .registerSource({ source: "skill-pack", skills: SkillPack.skills })
        .pipe(Effect.provide(SkillPack.layerMemory({})))
      index++
    } else if (entry.source === "native") {
      yield* registry.register(skillOf(entry, entry.name ?? "", entered))
      index++
    } else {
      const end = entries.findIndex(
        (other, at) => at > index && (other.source !== "mcp" || other.server !== entry.server)
      )
      const tools = entries.slice(index, end === -1 ? entries.length : end)
      const names = yield* McpNames.assign(
        tools.map(({ server, tool }) => ({ server: server ?? "", tool: tool ?? "" })),
        (name) => Option.isSome(registry.find(name))
      )
      const skills = tools.flatMap((tool, at) => {
        const name = names[at]
        return name === undefined ? [] : [skillOf(tool, name, entered)]
      })
      yield* registry.registerSource({ source: "mcp", skills })
      index += tools.length
    }
  }
})

// ---------------------------------------------------------------- the policy

const shapeOf = (given: Rules): Layer.Layer<never, Policy.ConfigInvalid> => {
  const { failsWith } = given
  if (failsWith !== undefined) return Policy.layer(() => Effect.fail(failsWith))
  const outcomes: ReadonlyArray<Policy.Outcome> = ["allow", "confirm", "deny"]
  const fallback = outcomes.find((outcome) => given.default?.startsWith(outcome.slice(0, 4)))
  return Policy.layerRules({
    ...(given.deny === undefined ? {} : { deny: given.deny.map(ruleOf) }),
    ...(given.confirm === undefined ? {} : { confirm: given.confirm.map(ruleOf) }),
    ...(given.allow === undefined ? {} : { allow: given.allow.map(ruleOf) }),
    ...(given.hide === undefined ? {} : { hide: [given.hide].flat() }),
    ...(fallback === undefined ? {} : { default: fallback })
  })
}

const ruleOf = ({ tool: name, ...rule }: SourceRule): Policy.Rule => ({ name, ...rule })

const policyOf = (vector: Case) => {
  const all = [...(vector.policy === undefined ? [] : [vector.policy]), ...(vector.policies ?? [])].map(shapeOf)
  return all.reduceRight(
    (outer, inner) => Layer.provideMerge(outer, inner),
    Layer.empty as Layer.Layer<never, Policy.ConfigInvalid>
  )
}

const scope = { runId: "r", rootRunId: "r", agent: "agent", depth: 0, context: {} }

const accessOf = (vector: Case): SkillRegistry.Access => ({
  agentSkills: vector.agent?.skills ?? undefined,
  allowed: vector.config?.allowedSkills ?? vector.config?.allowed_skills,
  model: { id: "m", capabilities: vector.model?.capabilities ?? ["text"] }
})

// ---------------------------------------------------------------- asking

type Answer = { readonly [key: string]: unknown }

const ask = Effect.fnUntraced(function* (vector: Case, entered: Array<string>) {
  const registry = yield* SkillRegistry.SkillRegistry
  const registered = yield* Effect.result(register(registry, vector.register, entered))
  if (Result.isFailure(registered)) {
    const { _tag, ...fields } = registered.failure
    return { error: _tag, ...fields, names: yield* namesOf(registry) } satisfies Answer
  }
  const policy = Policy.among(yield* Layer.build(policyOf(vector)))
  const { name = "" } = vector.ask
  switch (vector.ask.op) {
    case "names":
    case "list":
    case "definitions":
    case "filter":
    case "visible": {
      const all = yield* registry.all
      const isWhole = vector.ask.expose === "all" || (vector.agent === undefined && vector.policy === undefined)
      const seen = isWhole ? all : SkillRegistry.visible(all, accessOf(vector))
      const shown = seen.filter((skill) => isWhole || (policy?.visible?.(skill.name, scope) ?? true))
      return {
        names: shown.map((skill) => skill.name),
        sources: shown.map((skill) => skill.source),
        count: shown.length
      } satisfies Answer
    }
    case "find": {
      const found = registry.find(name)
      return {
        found: Option.isSome(found),
        ...(Option.isSome(found)
          ? { name: found.value.name, source: found.value.source }
          : { error: "ToolNotFound", name })
      } satisfies Answer
    }
    case "authorize":
      return yield* authorize(vector, registry, policy)
    case "execute":
      return yield* execute(vector, entered)
    default:
      return undefined
  }
})

const namesOf = (registry: SkillRegistry.SkillRegistry["Service"]) =>
  Effect.map(registry.all, (skills) => skills.map((skill) => skill.name))

const words = { Allowed: "allowed", Denied: "denied", Confirm: "confirmation" }

/** What is hidden is denied, whoever hides it (AC-18). */
const authorize = Effect.fnUntraced(function* (
  vector: Case,
  registry: SkillRegistry.SkillRegistry["Service"],
  policy: Policy.PolicyShape | undefined
) {
  const { arguments: input = {}, name = "" } = vector.ask
  const found = registry.find(name)
  const { agentSkills, allowed } = accessOf(vector)
  const isListed =
    (agentSkills === "all" || vector.agent === undefined || (agentSkills?.includes(name) ?? false)) &&
    (allowed?.includes(name) ?? true)
  const isThere =
    Option.isNone(found) ||
    SkillRegistry.allowed(found.value, { ...accessOf(vector), agentSkills: "all" }) === undefined
  const decision =
    !isListed || !isThere
      ? Policy.denied("not available")
      : policy === undefined
        ? Policy.allowed
        : yield* policy.authorize({
            ...scope,
            callId: "c",
            name,
            kind: "skill",
            input: input,
            effects: Option.isSome(found) ? found.value.effects : "write"
          })
  return { decision: words[decision._tag], ...(decision.reason === undefined ? {} : { reason: decision.reason }) }
})

/** A real run whose model makes exactly this call. */
const execute = Effect.fnUntraced(function* (vector: Case, entered: Array<string>) {
  const { arguments: input = {}, name = "" } = vector.ask
  const mock = MockProvider.make({ calls: [{ name, input: input }] }, "done")
  const agent = Agent.make({
    instructions: "",
    model: { id: "m", capabilities: vector.model?.capabilities ?? ["text"] },
    skills: vector.agent?.skills ?? "all",
    dialect: "tools"
  })
  const registry = yield* SkillRegistry.SkillRegistry
  const kernel = Kernel.layerMemory.pipe(
    Layer.provide([Layer.succeed(SkillRegistry.SkillRegistry, registry), MockProvider.layerOf(mock)])
  )
  const events = yield* Stream.runCollect(Kernel.stream(agent, "go")).pipe(
    Effect.provide(Layer.mergeAll(kernel, policyOf(vector)))
  )
  const result = events
    .filter((event) => event.type === "tool_call_completed")
    .map((event) => event.result)
    .at(0)
  const error = result?.error
  // A call that a policy stops never runs, so only what the model was told says how it ended.
  const told = events
    .flatMap((event) => (event.type === "run_completed" ? (event.result?.messages ?? []) : []))
    .flatMap(({ content }) => content)
    .find((part) => part.type === "tool_result")
  const output = result?.output ?? told?.content ?? []
  const text = error?.message ?? output.map(Content.toText).join("")
  return {
    isError: error !== undefined || told?.isError === true,
    ...(error === undefined ? {} : { error_type: error.name, errorType: error.name, message: error.message }),
    ...(error?.name === "ToolNotFound" ? { error: error.name, name } : {}),
    text,
    contains: text,
    truncated: result?.metadata?.["truncated"] ?? false,
    handlerCalled: entered.length > 0,
    called: entered.length > 0,
    content: output.map(Content.encode)
  } satisfies Answer
})

// ---------------------------------------------------------------- comparing

const same: { readonly [word: string]: string } = {
  allow: "allowed",
  deny: "denied",
  confirm: "confirmation",
  requires_confirmation: "confirmation",
  requiresConfirmation: "confirmation",
  RequiresConfirmation: "confirmation"
}

/** Compares what is expected; false when a key means nothing here. */
const check = (expected: Answer, actual: Answer, where: string): boolean => {
  for (const [key, value] of Object.entries(expected)) {
    if (!(key in actual)) {
      if (key === "error" || "error" in actual) assert.deepStrictEqual(actual, expected, where)
      return false
    }
    const found = actual[key]
    if (key === "contains") for (const text of [value].flat()) assert.include(String(found), String(text), where)
    else if (key === "decision") assert.strictEqual(found, same[String(value)] ?? value, where)
    else assert.deepStrictEqual(found, value, where)
  }
  // Of what is not found, that says it all.
  if (!("error" in expected) && expected["found"] !== false) assert.notProperty(actual, "error", where)
  return true
}

/** Cases of ours: the allow list as tapes write it, and a name that is not there. */
const further: ReadonlyArray<Case> = [
  {
    id: "allowed-skills",
    title: "what the configuration does not allow is not available (AC-18)",
    register: [{ source: "native", name: "shell" }],
    agent: { skills: "all" },
    config: { allowed_skills: ["search"] },
    ask: { op: "authorize", name: "shell" },
    expect: { decision: "denied", reason: "not available" }
  },
  {
    id: "not-found",
    title: "names are found as they are written (AC-12)",
    register: [{ source: "native", name: "shell" }],
    ask: { op: "find", name: "Shell" },
    expect: { found: false }
  }
]

describe("policy-registry.json", () => {
  const counted = tally("policy-registry.json")

  for (const vector of [...vectors.cases, ...further]) {
    it.effect(`${vector.id}: ${vector.title}`, () =>
      Effect.gen(function* () {
        const actual = yield* ask(vector, [])
        if (actual === undefined || !check(vector.expect, actual, vector.id)) return counted.skip(vector.id)
        counted.ran()
      }).pipe(Effect.provide(SkillRegistry.layer()))
    )
  }

  counted.report()
})
