/**
 * Serves skills, or an agent, as an MCP server.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { errorCode } from "../../kit/failedRequest.ts"
import * as McpServe from "../../mcp/McpServe.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import * as CliAgent from "../cliAgent.ts"
import type { ServeFlags } from "../commands/mcpFlags.ts"
import { asUsage, usage } from "../exit.ts"
import * as KernelLayer from "../kernelLayer.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"

/** Serves until the input or the process ends. */
export const serve = Effect.fnUntraced(function* ({
  allowHost,
  allowOrigin,
  host = "127.0.0.1",
  port = 0,
  ...input
}: ServeFlags) {
  const screen = yield* Screen
  const settings = yield* Settings.ofFlags(input)
  const isAgent = (input.model ?? input.script ?? input.agent) !== undefined
  yield* Effect.gen(function* () {
    if (!input.http) return yield* McpServe.stdio()
    const { token, url } = yield* McpServe.http({ host, port, hosts: allowHost, origins: allowOrigin })
    const authorization = token === undefined ? undefined : `Bearer ${Redacted.value(token)}`
    if (input.json) screen.out(`${Text.json({ url, authorization })}\n`)
    else screen.out(`${url}\n${authorization === undefined ? "" : `Authorization: ${authorization}\n`}`)
    return yield* Effect.never
  }).pipe(
    Effect.scoped,
    Effect.provide(isAgent ? yield* agentSkill(settings) : KernelLayer.skillsOf(CliAgent.skillsOf(settings))),
    Effect.mapError((error) =>
      error._tag === "ServeError"
        ? usage(`cannot listen on ${host}, port ${port} (${errorCode(error) ?? "refused"})`)
        : asUsage(error)
    )
  )
})

/** Registers an agent as a skill. */
const agentSkill = Effect.fnUntraced(function* (settings: Settings.Settings) {
  const { agent, kernel } = yield* CliAgent.make(settings, Store.memory, { name: "kernai", yes: true })
  const served = agent()
  const what = settings.model === undefined ? "An agent" : `An agent with the model ${settings.model}`
  const description = served.description ?? `${what}: tell it what to do, and it answers`
  const skills = Effect.map(CliAgent.programs(settings), (withPrograms) =>
    SkillRegistry.layer(McpServe.agent({ ...withPrograms(served), description }))
  )
  return Layer.provide(Layer.orDie(Layer.unwrap(skills)), kernel)
})
