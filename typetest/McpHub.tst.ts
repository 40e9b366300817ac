/**
 * What users rely on the compiler for: what a hub needs and can fail with, and what an agent as a tool needs.
 */
import type { Effect, FileSystem, Layer, Scope } from "effect"
import type { HttpClient } from "effect/http"
import type { ChildProcessSpawner } from "effect/process"
import { Agent, type Kernel, type KernelError, type ProtocolRegistry, type Skill, type SkillRegistry } from "kernai"
import { McpHub, McpServe } from "kernai/mcp"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

type Needs =
  | SkillRegistry.SkillRegistry
  | ProtocolRegistry.ProtocolRegistry
  | ChildProcessSpawner.ChildProcessSpawner
  | HttpClient.HttpClient

const config = { servers: new Map() }
const hub = McpHub.layer(config)
yes<Equal<typeof hub, Layer.Layer<McpHub.McpHub, KernelError.ToolNameConflict, Needs>>>()

const read = McpHub.layerConfig("mcp.yml")
yes<
  Equal<
    typeof read,
    Layer.Layer<McpHub.McpHub, KernelError.ToolNameConflict | KernelError.ConfigInvalid, Needs | FileSystem.FileSystem>
  >
>()
// @ts-expect-error a config is a path or a mapping
McpHub.layerConfig(7)

const agent = McpServe.agent(Agent.make({ instructions: "", model: "m" }))
yes<Equal<typeof agent, Skill.AnySkill<Kernel.Kernel>>>()

const layered = McpServe.layerHttp()
yes<Equal<Layer.Success<typeof layered>, McpServe.McpServe>>()
yes<Equal<Layer.Services<typeof layered>, SkillRegistry.SkillRegistry>>()

const served = McpServe.http()
yes<Equal<Effect.Services<typeof served>, SkillRegistry.SkillRegistry | Scope.Scope>>()
