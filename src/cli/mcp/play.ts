/**
 * What `kernai run --mcp <file>` does without a model: a scripted one works with the servers.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Agent from "../../Agent.ts"
import * as Kernel from "../../Kernel.ts"
import * as MediaStore from "../../MediaStore.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import { Provider } from "../../Provider.ts"
import * as RunStore from "../../RunStore.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import { translate } from "../demo/translate.ts"
import { type CommandFailed, usage } from "../exit.ts"
import { follow, type Options as FollowOptions } from "../followRun.ts"
import { excerpt } from "../terminalText.ts"
import * as Script from "./scriptedTools.ts"
import * as Servers from "./servers.ts"

/** Plays the script with the servers of a file. */
export const play = Effect.fnUntraced(function* (
  file: string,
  options: Pick<FollowOptions, "form" | "colors"> & { readonly maxSteps: number }
) {
  const agent = Agent.make({
    instructions: "You read files through the server 'files' and translate with the skill 'translate'.",
    model: "scripted",
    skills: "all",
    maxSteps: options.maxSteps
  })
  const kernel = Kernel.layer.pipe(
    Layer.provide([
      yield* withServers(file, Layer.orDie(SkillRegistry.layer(translate))),
      Layer.sync(Provider, Script.provider)
    ])
  )
  return yield* follow(Kernel.stream(agent, Script.question), {
    ...options,
    title: `scripted model: no key is needed; the servers of ${file} and the skill are real`,
    question: Script.question,
    check: (result) =>
      result.text === Script.answer
        ? undefined
        : `the scripted model knows examples/mcp.yml only, for other servers give it a --model; it said: ${excerpt(result.text, 200)}`
  }).pipe(Effect.provide(kernel))
})

/** What a kernel needs beside a provider: skills, those of the servers of a file too, and stores in memory. */
export const withServers = Effect.fnUntraced(function* <E extends { readonly message: string }, R>(
  file: string,
  skills: Layer.Layer<SkillRegistry.SkillRegistry, E, R>
) {
  const config = yield* Servers.read(file)
  const registries = Layer.merge(skills, Layer.orDie(ProtocolRegistry.layer()))
  const connected = Layer.provideMerge(Servers.layer(file, config), registries)
  return orUsage(Layer.mergeAll(connected, MediaStore.layerMemory, RunStore.layerMemory))
})

/** What keeps a layer from being built is one line, and nothing was run. */
const orUsage = <A, E extends { readonly message: string }, R>(layer: Layer.Layer<A, E, R>) =>
  Layer.catch(layer, (error) =>
    Layer.effectContext<A, CommandFailed, never>(Effect.fail(usage(excerpt(error.message, 400))))
  )
