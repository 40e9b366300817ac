/**
 * The parts of a kernel as one value, from which its layer is made.
 */

import * as Layer from "effect/Layer"
import type { ToolNameConflict } from "../../KernelError.ts"
import * as MediaStore from "../../MediaStore.ts"
import type { ModelRegistry } from "../../ModelRegistry.ts"
import type { AnyProtocol, Services as ProtocolServices } from "../../Protocol.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import type { Provider } from "../../Provider.ts"
import * as RunStore from "../../RunStore.ts"
import type { AnySkill, SkillTypes } from "../../Skill.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import type { Parts } from "./kernelVerbs.ts"

type LayerOf<A> = Layer.Layer<A, unknown, unknown>

/**
 * The parts of a kernel, each with a default.
 *
 * @category models
 * @since 0.1.0
 */
export interface KernelParts {
  /** The provider of the models. Default: the one in context, unless there are `models`. */
  readonly provider?: LayerOf<Provider> | undefined
  /** Providers by the names in `<provider>/<model>`. Default: none. */
  readonly models?: LayerOf<ModelRegistry> | undefined
  /** The registered skills, or their registry. Skills that agents hold as values need no place here. Default: none. */
  readonly skills?: ReadonlyArray<AnySkill<unknown>> | LayerOf<SkillRegistry.SkillRegistry> | undefined
  /** The protocols, or their registry. Default: none. */
  readonly protocols?: ReadonlyArray<AnyProtocol<unknown>> | LayerOf<ProtocolRegistry.ProtocolRegistry> | undefined
  /** The store of the runs. Default: in memory. */
  readonly store?: LayerOf<RunStore.RunStore> | undefined
  /** The store of their media. Default: in memory. */
  readonly media?: LayerOf<MediaStore.MediaStore> | undefined
}

/**
 * Types of the parts of a kernel.
 *
 * @category models
 * @since 0.1.0
 */
export declare namespace KernelParts {
  /** The errors with which the layer of a kernel fails. */
  type Errors<P extends KernelParts> = Layer.Error<LayersOf<P>> | ConflictOf<P["skills"] | P["protocols"]>

  /** The services that the layer of a kernel needs. */
  type Services<P extends KernelParts> =
    | Layer.Services<LayersOf<P>>
    | SkillTypes.Services<Listed<P["skills"]>>
    | ProtocolServices<Listed<P["protocols"]>>
    | (P extends { readonly provider: object } | { readonly models: object } ? never : Provider)
}

type LayersOf<P> = Extract<P[keyof P], Layer.Any>

type Listed<L> = L extends ReadonlyArray<infer Entry> ? Entry : never

type ConflictOf<L> = L extends readonly [] ? never : L extends ReadonlyArray<unknown> ? ToolNameConflict : never

/** Returns the stores and registries of a kernel. */
export const storesOf = ({ media, protocols = [], skills = [], store }: KernelParts): LayerOf<Parts> =>
  Layer.mergeAll(
    isList(skills) ? SkillRegistry.layer(...skills) : skills,
    isList(protocols) ? ProtocolRegistry.layer(...protocols) : protocols,
    store ?? RunStore.layerMemory,
    media ?? MediaStore.layerMemory
  )

/** Returns what a kernel reaches models by. */
export const modelsOf = ({ models, provider }: KernelParts): LayerOf<never> =>
  Layer.merge(models ?? Layer.empty, provider ?? Layer.empty)

const isList = <A>(given: ReadonlyArray<A> | object): given is ReadonlyArray<A> => Array.isArray(given)
