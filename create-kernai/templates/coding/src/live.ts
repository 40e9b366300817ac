import { Layer } from "effect"
import { Kernel, PromptPipeline, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { Workspace, WorkspacePolicy, WorkspaceRules, WorkspaceSkills } from "kernai/workspace"
import { model } from "./model.ts"

/** A folder in memory. `Workspace.layerSandboxed({ root: "." })` is one on disk, whose commands run in a sandbox. */
const WorkspaceLive = Workspace.layerMemory({
  "AGENTS.md": "Programs are shell scripts.\n",
  "sum.sh": "echo $(($1 - $2))\n",
  "test.sh": '[ "$(bash sum.sh 2 3)" = 5 ] && echo passed || { echo failed; exit 1; }\n'
})

/** Commands that begin with an allowed prefix run without a question. */
export const live = Kernel.layerMemory.pipe(
  Layer.provide([
    MockProvider.layerOf(model()),
    WorkspacePolicy.layer({ allow: ["bash test.sh"] }),
    PromptPipeline.layer({ sections: [WorkspaceRules.section] })
  ]),
  Layer.provide(SkillRegistry.layer(...WorkspaceSkills.all)),
  Layer.provideMerge(WorkspaceLive)
)
