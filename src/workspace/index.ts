/**
 * A workspace: files and commands that an agent may use, in memory, in a folder, or in a sandbox.
 *
 * @since 0.1.0
 */

export * as Workspace from "./Workspace.ts"
export * as WorkspaceBackend from "./WorkspaceBackend.ts"
export * as WorkspaceError from "./WorkspaceError.ts"
export * as WorkspaceHistory from "./WorkspaceHistory.ts"
export * as WorkspacePolicy from "./WorkspacePolicy.ts"
export * as WorkspaceRules from "./WorkspaceRules.ts"
export * as WorkspaceSkills from "./WorkspaceSkills.ts"
