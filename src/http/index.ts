/**
 * Agents over HTTP: routes, access control, clients, and agents of other services.
 *
 * @since 0.1.0
 */

export * as A2a from "./A2a.ts"
export * as A2aClient from "./A2aClient.ts"
export * as A2aError from "./A2aError.ts"
export * as A2aHub from "./A2aHub.ts"
export * as Access from "./Access.ts"
export * as AgUi from "./AgUi.ts"
export * as AiSdkUi from "./AiSdkUi.ts"
export * as CallerRoute from "./CallerRoute.ts"
export * as HttpKernel from "./HttpKernel.ts"
export * as HttpKernelApi from "./HttpKernelApi.ts"
export * as HttpKernelClient from "./HttpKernelClient.ts"
export * as HttpProblem from "./HttpProblem.ts"
export * as OperationBodies from "./OperationBodies.ts"
export * as RunBodies from "./RunBodies.ts"
export * as ServedRuns from "./ServedRuns.ts"
