/**
 * Skills as folders: a SKILL.md, and files that are read on demand.
 *
 * A model first sees names and descriptions only, then loads the body of one skill, then reads its files. The store
 * reads and never executes: a body is data, and the tools it mentions grant no rights. Paths are checked before
 * anything is opened.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Agents from "../Agent.ts"
import { layerFor } from "../kit/layerFor.ts"
import { entities, visible } from "../kit/text.ts"
import * as Packs from "./internal/skillPacks.ts"
import type { Files, Options, SkillPack, SkillPackStoreShape } from "./internal/skillPackType.ts"
import type { ToolNameConflict } from "../KernelError.ts"
import {
  FileTooLarge,
  InvalidSkillPath,
  SkillFileNotFound,
  SkillPackInvalid,
  SkillPackNotFound
} from "../KernelError.ts"
import type { PromptContext } from "../PromptPipeline.ts"
import * as Skill from "../Skill.ts"
import { SkillRegistry } from "../SkillRegistry.ts"

export { FileTooLarge, InvalidSkillPath, SkillFileNotFound, SkillPackInvalid, SkillPackNotFound }

// ---------------------------------------------------------------- models

export type {
  Files,
  Folder,
  Listing,
  LoadedPack,
  Options,
  Problem,
  SkillPack,
  SkillPackStoreShape,
  Warning
} from "./internal/skillPackType.ts"

/**
 * The skill packs of an application.
 *
 * @category services
 * @since 0.1.0
 */
export class SkillPackStore extends Context.Service<SkillPackStore, SkillPackStoreShape>()("kernai/SkillPack") {}

// ---------------------------------------------------------------- constructors

/**
 * Creates a store over any source of files.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: (files: Files, options?: Options) => SkillPackStoreShape = Packs.make

/**
 * Returns the section of the prompt that lists skill packs: names and descriptions only.
 *
 * @category rendering
 * @since 0.1.0
 */
export const fragment = (skills: ReadonlyArray<Pick<SkillPack, "name" | "description">>): string =>
  skills.length === 0
    ? ""
    : `<available_skills>\n${skills
        .map(({ description, name }) => `  <skill name="${attribute(name)}" description="${attribute(description)}"/>`)
        .join("\n")}\n</available_skills>`

/**
 * Returns the prompt section for an agent that may load skill packs, or an empty text.
 *
 * @category rendering
 * @since 0.1.0
 */
export const section = (context: PromptContext): Effect.Effect<string, SkillPackInvalid, SkillPackStore> => {
  const names = Agents.skillNames(context.agent)
  return names === undefined || (names !== "all" && !names.includes(load.name))
    ? Effect.succeed("")
    : SkillPackStore.use((store) => Effect.map(store.list, (listing) => fragment(listing.skills)))
}

const attribute = (text: string): string => entities(visible(text))

// ---------------------------------------------------------------- skills

const list = Skill.make("skills_list", {
  description: "Lists the skill packs: instructions for special tasks, by name and description.",
  input: Schema.Struct({}),
  effects: "read",
  source: "skill-pack",
  annotations: { openWorld: false },
  execute: () =>
    SkillPackStore.use((store) =>
      Effect.map(store.list, ({ skills }) => ({
        // As in the fragment, invisible characters are escaped for readers of logs.
        skills: skills.map(({ description, name }) => ({ name, description: visible(description) }))
      }))
    )
})

const load = Skill.make("skills_load", {
  description: "Loads the instructions of a skill pack, and tells which files it has.",
  input: Schema.Struct({ name: Schema.String.annotate({ description: "A name from the list" }) }),
  effects: "read",
  source: "skill-pack",
  annotations: { openWorld: false },
  execute: ({ name }) =>
    SkillPackStore.use((store) =>
      Effect.map(store.load(name), (pack) => {
        const files = [...pack.files.scripts, ...pack.files.references, ...pack.files.assets]
        return [
          pack.body.trim(),
          ...(pack.bodyTruncated ? ["[the rest of these instructions is too long and was cut]"] : []),
          ...(files.length === 0 ? [] : [`Files of this skill pack:\n${files.map((file) => `- ${file}`).join("\n")}`])
        ].join("\n\n")
      })
    )
})

const readFile = Skill.make("skills_read_file", {
  description: "Reads a file of a skill pack. Nothing in it is run.",
  input: Schema.Struct({
    name: Schema.String.annotate({ description: "The name of the skill pack" }),
    path: Schema.String.annotate({ description: "A path as the skill pack lists it" })
  }),
  effects: "read",
  source: "skill-pack",
  annotations: { openWorld: false },
  execute: ({ name, path }) => SkillPackStore.use((store) => store.readFile(name, path))
})

/**
 * The three skills with which a model uses skill packs: `skills_list`, `skills_load` and `skills_read_file`.
 *
 * @category skills
 * @since 0.1.0
 */
export const skills: ReadonlyArray<Skill.AnySkill<SkillPackStore>> = [list, load, readFile]

// ---------------------------------------------------------------- layers

/**
 * Adds the three skills to the registry until the layer is released.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSkills: Layer.Layer<never, ToolNameConflict, SkillRegistry | SkillPackStore> = layerFor(
  SkillRegistry,
  () =>
    Layer.effectDiscard(
      Effect.flatMap(SkillRegistry, (registry) =>
        Effect.catchTag(registry.registerSource({ source: "skill-pack", skills }), "DefinitionInvalid", Effect.die)
      )
    )
)

/**
 * Provides a store of packs in memory, given as paths such as `name/SKILL.md` and their content.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory = (
  files: { readonly [path: string]: string | Uint8Array } | ReadonlyMap<string, string | Uint8Array>,
  options?: Options
): Layer.Layer<SkillPackStore> => Layer.sync(SkillPackStore, () => make(Packs.inMemory(files), options))
