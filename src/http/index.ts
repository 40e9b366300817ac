/**
 * Agents over HTTP: routes, who may use them, and a client.
 *
 * @since 0.2.0
 */

export * as Access from "./Access.ts"
export * as AgUi from "./AgUi.ts"
export * as AiSdkUi from "./AiSdkUi.ts"
export * as HttpKernel from "./HttpKernel.ts"
export * as HttpKernelApi from "./HttpKernelApi.ts"
export * as HttpKernelClient from "./HttpKernelClient.ts"
export * as HttpProblem from "./HttpProblem.ts"
export * as RunBodies from "./RunBodies.ts"
export * as ServedRuns from "./ServedRuns.ts"
