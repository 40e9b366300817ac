/**
 * What `kernai mcp serve` does.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Agent from "../../Agent.ts"
import { errorCode } from "../../internal/base/transient.ts"
import * as Kernel from "../../Kernel.ts"
import * as McpServe from "../../mcp/McpServe.ts"
import { Provider } from "../../Provider.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import { usage } from "../exit.ts"
import { type Options as LiveOptions, resolve, skillsOf } from "../live.ts"
import { Screen } from "../screen.ts"
import { excerpt } from "../terminalText.ts"

/** What is offered, and where. */
export interface Options {
  readonly skills: LiveOptions["skills"]
  /** Offers one agent with these skills instead of the skills. */
  readonly agent: { readonly model: string; readonly instructions: string } | undefined
  /** Default: the standard streams. */
  readonly http: { readonly host: string; readonly port: number; readonly hosts: ReadonlyArray<string> } | undefined
}

/** Serves until the input ends, or the process does. */
export const serve = Effect.fnUntraced(function* (options: Options) {
  const screen = yield* Screen
  const skills = skillsOf(options.skills)
  const offered = options.agent === undefined ? skills : yield* agentOf(options.agent, skills)
  const serving = Effect.gen(function* () {
    if (options.http === undefined) return yield* McpServe.stdio()
    const { token, url } = yield* McpServe.http(options.http)
    screen.out(`${url}\n`)
    if (token !== undefined) screen.out(`Authorization: Bearer ${Redacted.value(token)}\n`)
    return yield* Effect.never
  })
  yield* Effect.scoped(serving).pipe(
    Effect.provide(offered),
    Effect.mapError((error) =>
      usage(
        error._tag === "ServeError"
          ? `${options.http?.host} cannot be listened on, port ${options.http?.port} (${errorCode(error) ?? "refused"})`
          : excerpt(error.message, 400)
      )
    )
  )
})

const agentOf = Effect.fnUntraced(function* (
  { instructions, model: name }: { readonly model: string; readonly instructions: string },
  skills: ReturnType<typeof skillsOf>
) {
  const { model, provider } = yield* resolve(name)
  const agent = Agent.make({
    name: "kernai",
    description: `An agent with the model ${name}: tell it what to do, and it answers`,
    instructions,
    model,
    skills: "all"
  })
  const kernel = Kernel.layerMemory.pipe(Layer.provide([skills, Layer.succeed(Provider, provider)]))
  return Layer.provide(Layer.orDie(SkillRegistry.layer(McpServe.agent(agent))), kernel)
})
