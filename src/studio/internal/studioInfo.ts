/** Facts about the server for the page: its agents and their settings, and the inputs of skills. */

import * as Effect from "effect/Effect"
import type { JsonObject } from "../../kit/json.ts"
import type { Runnable } from "../../RunWorker.ts"
import type { AnySkill } from "../../Skill.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"
import type { Models } from "./forkEdits.ts"

/** An agent to talk to. */
interface AgentLine {
  readonly name: string
  readonly description?: string | undefined
  readonly model: string
  readonly dialect: string
  /** Questions to begin with. */
  readonly starters?: ReadonlyArray<string> | undefined
}

/** The settings of the studio. */
export interface Info {
  readonly readOnly: boolean
  /** Whether reports of scenarios can be shown. */
  readonly scenarios: boolean
  /** Whether there is a folder of evaluations. */
  readonly evaluations: boolean
  readonly agents: ReadonlyArray<AgentLine>
  /** The names of the models with which a turn can be played again. */
  readonly models: ReadonlyArray<string>
  /** JSON Schemas of the inputs of skills, by the names of the skills. */
  readonly inputs: Readonly<Record<string, JsonObject>>
}

interface Options {
  readonly readOnly: boolean
  readonly scenarios: string | undefined
  readonly evaluations: string | undefined
  readonly models: Models
  /** Questions to begin with, by the names of agents. */
  readonly starters: Readonly<Record<string, ReadonlyArray<string>>>
}

/** Returns the facts about the server. Skills are those of the registry in context and those of the agents. */
export const infoOf = (
  { evaluations, models, readOnly, scenarios, starters }: Options,
  agents: ReadonlyArray<Runnable<unknown>>,
  registry: SkillRegistry["Service"] | undefined
): Effect.Effect<Info> =>
  Effect.map(registry?.all ?? Effect.succeed([]), (registered) => {
    const own = agents.flatMap(({ skills }) =>
      skills === undefined || skills === "all" ? [] : skills.filter((skill) => typeof skill !== "string")
    )
    const skills: ReadonlyArray<AnySkill<unknown>> = [...registered, ...own]
    return {
      readOnly,
      scenarios: scenarios !== undefined,
      evaluations: evaluations !== undefined,
      agents: agents.map(({ description, dialect, model, name }) => ({
        name,
        description,
        dialect,
        model: typeof model === "string" ? model : model.id,
        // A variant of an agent is asked what the agent is asked.
        starters: starters[name] ?? starters[name.split("@")[0] ?? name]
      })),
      models: [...models.keys()],
      inputs: Object.fromEntries(skills.map(({ inputSchema, name }) => [name, inputSchema]))
    }
  })
