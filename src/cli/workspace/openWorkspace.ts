/**
 * The folder in which the agent of a command works: its layer, its skills, what it may do without asking, and the rules
 * of the folder in the prompt.
 */

import type * as FileSystem from "effect/FileSystem"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Policy from "../../Policy.ts"
import * as PromptPipeline from "../../PromptPipeline.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import * as Workspace from "../../workspace/Workspace.ts"
import * as WorkspaceHistory from "../../workspace/WorkspaceHistory.ts"
import * as WorkspacePolicy from "../../workspace/WorkspacePolicy.ts"
import * as WorkspaceRules from "../../workspace/WorkspaceRules.ts"
import * as WorkspaceSkills from "../../workspace/WorkspaceSkills.ts"
import { type CommandFailed, orUsage } from "../exit.ts"
import type { Stored } from "../kernelLayer.ts"
import type { Settings } from "../settings.ts"

/** In plan mode, nothing is changed. */
export type WorkMode = "plan" | "work"

/** What the agent may do now. A chat changes it while the agent works. */
export interface WorkRules {
  mode: WorkMode
  /** The prefixes of commands that the person always allows. */
  readonly allow: Array<string>
}

type Host = FileSystem.FileSystem | ChildProcessSpawner

/** What a command changes about the work in a folder. */
export interface WorkOptions {
  /** The mode: that of the rules, which a chat changes. */
  readonly mode?: Effect.Effect<WorkMode>
  /** Puts a backend around the folder. */
  readonly around?: (backend: Workspace.Backend) => Effect.Effect<Workspace.Backend, never, Host>
}

/** A folder to work in. */
export interface Work {
  readonly rules: WorkRules
  readonly instructions: string
  readonly layer: Layer.Layer<Workspace.Workspace, CommandFailed, Host>
  /** Registers the skills of the workspace. */
  readonly skills: Layer.Layer<Workspace.Workspace, CommandFailed, Host | SkillRegistry>
  /** Decides about calls, adds the rules of the folder to the prompt, and gives a fork the files of its revision. */
  readonly references: Layer.Layer<never, CommandFailed, Host | Stored>
}

/** Returns the layer of a folder. */
export const layerOf = (
  root: string,
  sandbox: boolean,
  around: WorkOptions["around"] = Effect.succeed
): Layer.Layer<Workspace.Workspace, CommandFailed, Host> => {
  const backend = sandbox ? Workspace.backendSandboxed({ root }) : Workspace.backendLocal({ root })
  return orUsage(Workspace.layer(Effect.flatMap(backend, around)))
}

/** Opens the folder of some settings. */
export const open = (
  root: string,
  { plan = false, sandbox = false, yes = false }: Settings,
  { around, mode: given }: WorkOptions = {}
): Work => {
  const rules: WorkRules = { mode: plan ? "plan" : "work", allow: [] }
  const mode = given ?? Effect.sync(() => rules.mode)
  const layer = layerOf(root, sandbox, around)
  const pipeline = PromptPipeline.layer({ sections: [WorkspaceRules.section] })
  return {
    rules,
    instructions,
    layer,
    skills: Layer.provideMerge(registered, layer),
    references: Layer.merge(
      policy(rules, mode, yes),
      Layer.provide(Layer.merge(pipeline, WorkspaceHistory.layerForks()), layer)
    )
  }
}

const instructions = `You work in a folder with the skills read, write, edit, list, glob, grep, shell and todo.
Look before you change something. Keep changes small, and in the style of the files around them.
Use todo for work of several steps. Run the tests of what you changed. Answer briefly when you are done.
In plan mode nothing can be changed: answer with a plan of numbered steps.`

const registered = Layer.effectDiscard(
  Effect.flatMap(SkillRegistry, (registry) =>
    registry.registerSource({ source: "native", skills: WorkspaceSkills.all })
  )
).pipe(orUsage)

const policy = ({ allow }: WorkRules, mode: Effect.Effect<WorkMode>, yes: boolean): Layer.Layer<never> =>
  Policy.layer((call) =>
    Effect.flatMap(mode, (mode) => {
      const isCommand = call.kind === "skill" && call.name === WorkspaceSkills.shell.name
      if (yes && mode === "work") return Effect.succeed(Policy.allowed)
      return call.effects === "write" && !isCommand
        ? Effect.succeed(Policy.confirm("it may change something"))
        : WorkspacePolicy.decide({ allow, mode }, call)
    })
  )
