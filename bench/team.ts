/**
 * A tree of 100 agents on three levels against the same number of turns in one run, in CPU time per turn.
 *
 * The root calls 4 agents, each of these 4, and each of these 5: 122 turns, which a single run takes too, with a skill
 * that writes in place of each call. All models reply at once.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import * as Agent from "../dist/Agent.js"
import * as Kernel from "../dist/Kernel.js"
import * as Provider from "../dist/Provider.js"
import * as SkillRegistry from "../dist/SkillRegistry.js"
import * as StreamPart from "../dist/StreamPart.js"
import * as Skill from "../dist/Skill.js"
import { act, agentOf, end } from "./kernai.ts"
import { compare, cpu, ratioRow, type Row } from "./support.ts"

const agents = 100
const turns = 2 + 4 * 2 + 16 * 2 + 80

const asks = (name: string, count: number) => [
  StreamPart.text(Array.from({ length: count }, () => `<block type="command" name="${name}">go</block>`).join("")),
  StreamPart.finish()
]

const member = (name: string, below: ReadonlyArray<Agent.Agent> = []): Agent.Agent =>
  Agent.make({
    name,
    instructions: "You test.",
    model: { id: name, capabilities: ["text"] },
    agents: below,
    concurrency: 8,
    spawn: { maxAgents: agents + 1, maxDepth: 3 }
  })

const root = member("root", [member("upper", [member("middle", [member("leaf")])])])

const calls: { readonly [model: string]: ReadonlyArray<StreamPart.StreamPart> } = {
  root: asks("upper", 4),
  upper: asks("middle", 4),
  middle: asks("leaf", 5)
}

/** Stored before and after it runs, as the call of an agent is. */
const writing = Skill.make("noop", {
  description: "Does nothing",
  input: Schema.Struct({ x: Schema.String }),
  execute: () => Effect.succeed("ok")
})

/** Model calls made so far. */
let asked = 0

/** The first reply of a conversation calls the agents below, the second answers. */
const team: Provider.ProviderShape = {
  name: "mock",
  stream: ({ messages, model }) => {
    asked++
    const isFirst = !messages.some(({ role }) => role === "assistant")
    return Stream.fromArray((isFirst ? calls[model.id] : undefined) ?? end)
  }
}

/** One run of as many turns. */
const alone = (): Provider.ProviderShape => {
  let call = 0
  return { name: "mock", stream: () => (asked++, Stream.fromArray(++call < turns ? act : end)) }
}

const kernel = Kernel.layerMemory.pipe(
  Layer.provide([SkillRegistry.layer(writing), Layer.succeed(Provider.Provider, team)])
)
const single = agentOf(turns)
const times = 4

const perTurn = (run: () => Effect.Effect<unknown, unknown, Kernel.Kernel>) => async () => {
  asked = 0
  const used = await cpu(() =>
    Effect.runPromise(Effect.provide(Effect.forEach(Array.from({ length: times }), run, { discard: true }), kernel))
  )
  if (asked !== times * turns) throw new Error(`${asked / times} turns instead of ${turns}`)
  return used / asked
}

export default async (): Promise<ReadonlyArray<Row>> => {
  const inTree = perTurn(() => Kernel.run(root, "go"))
  const inOne = perTurn(() => Kernel.run(single, "go", { provider: alone() }))
  const times = await compare(inTree, inOne, { warm: 8, counted: 25 })
  const name = `a tree of ${agents} agents, three levels deep: CPU per turn over the same turns in one run`
  return [ratioRow("team.tree", name, times, "µs", 1.2)]
}
