/**
 * Agents in editors, over the Agent Client Protocol.
 *
 * @since 0.1.0
 */

export * as AcpServe from "./AcpServe.ts"
