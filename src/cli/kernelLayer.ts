/**
 * The kernel of a command, and the skills that its agents may call.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import * as Kernel from "../Kernel.ts"
import type { MediaStore } from "../MediaStore.ts"
import * as Policy from "../Policy.ts"
import * as ProtocolRegistry from "../ProtocolRegistry.ts"
import { Provider, type ProviderShape } from "../Provider.ts"
import type { RunStore } from "../RunStore.ts"
import * as SkillRegistry from "../SkillRegistry.ts"
import * as Demo from "./demo/skills.ts"
import { type CommandFailed, orUsage } from "./exit.ts"
import type { Store } from "./storeFlag.ts"

/** The skills and protocols that an agent may call. */
export type Registries = SkillRegistry.SkillRegistry | ProtocolRegistry.ProtocolRegistry

export interface Options<R> {
  readonly provider: ProviderShape
  readonly registries: Layer.Layer<Registries, CommandFailed, R>
  readonly store: Store
  /** Policies and other references of the kernel. */
  readonly references: Layer.Layer<never, CommandFailed, R | Stored>
}

/** What references may read of stored runs. */
export type Stored = MediaStore | RunStore

/** Builds a kernel, and also provides its store, its media and its registries. */
export const make = <R>({ provider, references, registries, store }: Options<R>) =>
  Kernel.layer.pipe(
    Layer.provide([Layer.succeed(Provider, provider), references]),
    Layer.provideMerge(Layer.mergeAll(registries, store.runs, store.media))
  )

/** Lets a run pause and ask before a call that may change something. */
export const askBeforeWrites = Policy.layer((call) =>
  Effect.succeed(call.effects === "write" ? Policy.confirm("it may change something") : Policy.allowed)
)

/** The skills to offer: all examples, the examples that fit any question, none, or the skill files of a folder. */
export type Skills = "all" | "general" | "none" | { readonly directory: string }

type Files = FileSystem.FileSystem | Path.Path

/** Registers skills, without protocols. */
export const registriesOf = (skills: Skills): Layer.Layer<Registries, CommandFailed, Files> =>
  Layer.merge(skillsOf(skills), Layer.orDie(ProtocolRegistry.layer()))

export const skillsOf = (skills: Skills): Layer.Layer<SkillRegistry.SkillRegistry, CommandFailed, Files> => {
  const examples = skills === "all" ? Demo.all : skills === "general" ? Demo.general : []
  const registry = Layer.orDie(SkillRegistry.layer(...examples))
  if (typeof skills === "string") return registry
  const loader = Effect.promise(() => import("../file/SkillFileLoader.ts"))
  const files = Effect.map(loader, ({ layer }) => layer({ directory: skills.directory }))
  return orUsage(Layer.provideMerge(Layer.unwrap(files), registry))
}
