/** kernai as a side of the comparison of durable runs. */
import { Effect, Layer, Logger, ManagedRuntime, Redacted, Stream } from "effect"
import * as Agent from "../../dist/Agent.js"
import * as Kernel from "../../dist/Kernel.js"
import * as MediaStore from "../../dist/MediaStore.js"
import * as ProtocolRegistry from "../../dist/ProtocolRegistry.js"
import * as Provider from "../../dist/Provider.js"
import * as RunWorker from "../../dist/RunWorker.js"
import * as Skill from "../../dist/Skill.js"
import * as SkillRegistry from "../../dist/SkillRegistry.js"
import * as PgRunStore from "../../dist/sql/PgRunStore.js"
import * as StreamPart from "../../dist/StreamPart.js"
import { concurrency, type Peer, steps } from "../durableSide.ts"

export const agent = Agent.make({
  name: "clerk",
  instructions: "",
  model: "scripted",
  skills: "all",
  dialect: "tools",
  maxSteps: steps + 1
})

const pay = Skill.dynamic("pay", {
  description: "pays",
  effects: "write",
  inputSchema: { type: "object" },
  execute: () => Effect.succeed("paid")
})

const parts = (said: number): ReadonlyArray<StreamPart.StreamPart> =>
  said < steps
    ? [{ type: "tool-call", id: `call-${said}`, name: "pay", params: { turn: said } }, StreamPart.finish("tool-calls")]
    : [StreamPart.text("done"), StreamPart.finish()]

const provider: Provider.ProviderShape = {
  name: "scripted",
  stream: ({ messages }) => Stream.fromArray(parts(messages.filter(({ role }) => role === "assistant").length))
}

/** A kernel on the database. */
export const kernelAt = (url: string) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(pay),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      Layer.succeed(Provider.Provider, provider)
    ]),
    Layer.provideMerge(PgRunStore.layer({ url: Redacted.make(url) })),
    Layer.provideMerge(Logger.layer([]))
  )

export const open = async (url: string, role: "alone" | "worker"): Promise<Peer> => {
  const runtime = ManagedRuntime.make(kernelAt(url))
  await runtime.runPromise(Effect.void)
  if (role === "worker") {
    runtime.runFork(RunWorker.run({ agents: [agent], concurrency, onRun: () => Effect.void, share: 1 }))
  }
  return { run: (runId) => runtime.runPromise(Kernel.run(agent, "go", { runId })) }
}
