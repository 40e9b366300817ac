/**
 * Serves skills, or an agent, as an MCP server.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Agent from "../../Agent.ts"
import { errorCode } from "../../internal/base/errorCode.ts"
import * as McpServe from "../../mcp/McpServe.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import { CommandFailed, usage } from "../exit.ts"
import * as KernelLayer from "../kernelLayer.ts"
import * as Models from "../models.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import { excerpt } from "../terminalText.ts"

/** What is served, and where. */
export interface Options {
  readonly skills: KernelLayer.Skills
  /** Serves one agent with these skills, instead of the skills. */
  readonly agent: { readonly model: string; readonly instructions: string } | undefined
  /** Default: the standard streams. */
  readonly http: { readonly host: string; readonly port: number; readonly hosts: ReadonlyArray<string> } | undefined
}

/** Serves until the input ends, or the process does. */
export const serve = Effect.fnUntraced(function* ({ agent, http, skills }: Options) {
  const screen = yield* Screen
  const served = agent === undefined ? KernelLayer.skillsOf(skills) : yield* agentOf(agent, skills)
  yield* Effect.gen(function* () {
    if (http === undefined) return yield* McpServe.stdio()
    const { token, url } = yield* McpServe.http(http)
    screen.out(`${url}\n`)
    if (token !== undefined) screen.out(`Authorization: Bearer ${Redacted.value(token)}\n`)
    return yield* Effect.never
  }).pipe(
    Effect.scoped,
    Effect.provide(served),
    Effect.mapError((error) => {
      if (error instanceof CommandFailed) return error
      const address = `the address ${http?.host}, port ${http?.port}`
      return usage(
        error._tag === "ServeError"
          ? `${address}, cannot be listened on (${errorCode(error) ?? "refused"})`
          : excerpt(error.message, 400)
      )
    })
  )
})

const agentOf = Effect.fnUntraced(function* (
  { instructions, model: name }: { readonly model: string; readonly instructions: string },
  skills: KernelLayer.Skills
) {
  const { model, provider } = yield* Models.resolve(name)
  const agent = Agent.make({
    name: "kernai",
    description: `An agent with the model ${name}: tell it what to do, and it answers`,
    instructions,
    model,
    skills: "all"
  })
  const registries = KernelLayer.registriesOf(skills)
  const kernel = KernelLayer.make({ provider, registries, store: Store.memory, asks: false })
  return Layer.provide(Layer.orDie(SkillRegistry.layer(McpServe.agent(agent))), kernel)
})
