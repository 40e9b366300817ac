import { Effect, Layer, Schema } from "effect"
import { Agent, Kernel, MediaStore, Policy, ProtocolRegistry, Skill, SkillRegistry } from "kernai"
import { SqlRunStore } from "kernai/sql"

/** Sending cannot be undone, which is what `write`, the default, means. */
export const send = Skill.make("send", {
  description: "Sends a letter",
  input: Schema.Struct({ to: Schema.String, text: Schema.String }),
  execute: ({ to }) => Effect.succeed(`sent to ${to}`)
})

export const agent = Agent.make({
  instructions: "You write letters.",
  model: "scripted",
  dialect: "auto",
  skills: [send]
})

/** A person is asked before anything that cannot be undone. */
export const careful = Policy.layer((call) =>
  Effect.succeed(call.effects === "write" ? Policy.confirm("a letter cannot be taken back") : Policy.allowed)
)

/** Runs are stored in a file, so that another process can continue them. */
export const kernel = (file: string) =>
  Kernel.layerNoProvider.pipe(
    Layer.provide([SkillRegistry.layer(send), ProtocolRegistry.layer(), MediaStore.layerMemory, careful]),
    // Merged, because the store is also asked for waiting calls.
    Layer.provideMerge(SqlRunStore.layerSqlite(file))
  )
