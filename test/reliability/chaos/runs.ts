/**
 * The runs of the chaos: what they do, and the agents of each version of their processes.
 *
 * A run pays once in each turn. The id of a run says what it is: `pay` runs are innocent, `poison` runs kill their process,
 * and `nobody` runs are of an agent that no process has.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, Provider, Skill, SkillRegistry, StreamPart } from "kernai"

/** Turns with a call, before the answer. */
export const turns = 4

/** The kinds of runs, as their ids begin. */
export const kinds = ["pay", "poison", "nobody"] as const
export type Kind = (typeof kinds)[number]

export const kindOf = (runId: string): Kind => kinds.find((kind) => runId.startsWith(kind)) ?? "pay"

const given = { instructions: "", model: "scripted", skills: "all", dialect: "tools", maxSteps: 20 } as const

/** The agent of a version of the processes: each rollout renames it, and it still continues the runs of the one before. */
export const agentOf = (version: number) =>
  version % 2 === 0
    ? Agent.make({ ...given, name: "clerk", aliases: ["teller"], version: `${version}` })
    : Agent.make({ ...given, name: "teller", aliases: ["clerk"], version: `${version}`, instructions: "Be kind." })

/** An agent that no process has. */
export const nobody = Agent.make({ ...given, name: "nobody" })

/**
 * A model that pays in some turns, then answers. Like any model, it makes a call again that was not started because the
 * store was away for too long. It knows that from the result of the call, not from the number of its replies.
 */
const provider = (takes: number): Provider.ProviderShape => ({
  name: "scripted",
  stream: ({ messages }) => {
    const said = messages.filter(({ role }) => role === "assistant").length
    const results = messages.flatMap(({ content }) => content.filter((part) => part.type === "tool_result"))
    const paid = results.filter(({ isError }) => !isError).length
    const isPoison = JSON.stringify(messages.find(({ role }) => role === "user")?.content ?? "").includes("poison")
    const call = isPoison ? { name: "burn", params: {} } : { name: "pay", params: { turn: said } }
    const parts: ReadonlyArray<StreamPart.StreamPart> =
      paid < turns
        ? [{ type: "tool-call", id: `call-${said}`, ...call }, StreamPart.finish("tool-calls")]
        : [StreamPart.text("done"), StreamPart.finish()]
    return Stream.unwrap(Effect.as(Effect.sleep(takes), Stream.fromArray(parts)))
  }
})

/** What a process does when a run pays, and when one burns it. */
export interface Effects {
  readonly pay: (runId: string, callId: string) => Effect.Effect<string>
  readonly burn: Effect.Effect<string>
}

const turn = { turn: Schema.Int }

/** The skills of a version: every second one has grown a field. */
const skills = (version: number, { burn, pay }: Effects) => [
  Skill.make("pay", {
    description: "pays",
    effects: "write",
    input:
      version % 2 === 0 ? Schema.Struct(turn) : Schema.Struct({ ...turn, note: Schema.optionalKey(Schema.String) }),
    execute: (_, { callId, runId }) => pay(runId, callId)
  }),
  Skill.make("burn", {
    description: "burns",
    effects: "idempotent",
    input: Schema.Struct({}),
    execute: () => burn
  })
]

/** The kernel of a version, on the store of the context. */
export const kernelOf = (version: number, effects: Effects, takes = 50) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(...skills(version, effects)),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      Layer.succeed(Provider.Provider, provider(takes))
    ])
  )

/** The effects of a process that only submits runs. */
export const noEffects: Effects = { pay: () => Effect.never, burn: Effect.never }
