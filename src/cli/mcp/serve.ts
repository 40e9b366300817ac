/**
 * Serves skills, or an agent, as an MCP server.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { errorCode } from "../../internal/base/transient.ts"
import * as McpServe from "../../mcp/McpServe.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import * as CliAgent from "../cliAgent.ts"
import { type Agent, defaultSteps } from "../commands/flags.ts"
import type { ServeFlags } from "../commands/mcpCommand.ts"
import { asUsage, usage } from "../exit.ts"
import * as KernelLayer from "../kernelLayer.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"

/** Serves until the input ends, or the process does. */
export const serve = Effect.fnUntraced(function* ({ allowHost, model, skillsFrom, system, ...input }: ServeFlags) {
  const screen = yield* Screen
  const { host = "127.0.0.1", port = 0 } = input
  const skills = skillsFrom === undefined ? "general" : { directory: skillsFrom }
  yield* Effect.gen(function* () {
    if (!input.http) return yield* McpServe.stdio()
    const { token, url } = yield* McpServe.http({ host, port, hosts: allowHost })
    screen.out(`${url}\n`)
    if (token !== undefined) screen.out(`Authorization: Bearer ${Redacted.value(token)}\n`)
    return yield* Effect.never
  }).pipe(
    Effect.scoped,
    Effect.provide(model === undefined ? KernelLayer.skillsOf(skills) : yield* agentSkill(model, system, skills)),
    Effect.mapError((error) =>
      error._tag === "ServeError"
        ? usage(`${host}, port ${port}, cannot be listened on (${errorCode(error) ?? "refused"})`)
        : asUsage(error)
    )
  )
})

/** Registers an agent as a skill. */
const agentSkill = Effect.fnUntraced(function* (name: string, instructions = "", skills: KernelLayer.Skills) {
  const source = { _tag: "Provider", name } as const
  const described: Agent = { source, instructions, skills, yes: true, maxSteps: defaultSteps, dialect: "blocks" }
  const { agent, kernel } = yield* CliAgent.make(described, Store.memory)
  const description = `An agent with the model ${name}: tell it what to do, and it answers`
  const skill = McpServe.agent({ ...agent("kernai"), description })
  return Layer.provide(Layer.orDie(SkillRegistry.layer(skill)), kernel)
})
