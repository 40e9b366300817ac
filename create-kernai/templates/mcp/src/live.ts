import * as NodeServices from "@effect/platform-node/NodeServices"
import { Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Kernel, MediaStore, ProtocolRegistry, type Provider, RunStore, SkillRegistry } from "kernai"
import { McpHub } from "kernai/mcp"

export const agent = Agent.make({
  instructions: "You look after files.",
  model: "scripted",
  dialect: "auto",
  skills: "all"
})

// The hub registers the server's tools where the kernel looks for skills.
const registries = Layer.mergeAll(SkillRegistry.layer(), ProtocolRegistry.layer())
const hub = McpHub.layerConfig({
  servers: { files: { command: "npx", args: ["@modelcontextprotocol/server-filesystem", process.cwd()] } }
}).pipe(Layer.provide([registries, NodeServices.layer, FetchHttpClient.layer]))

export const live = (model: Layer.Layer<Provider.Provider>) =>
  Layer.mergeAll(
    hub,
    Kernel.layer.pipe(Layer.provide([registries, model, MediaStore.layerMemory, RunStore.layerMemory]))
  )
