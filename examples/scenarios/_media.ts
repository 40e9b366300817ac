/**
 * The picture the scenarios share: eight by eight pixels of red, as PNG.
 */
export const redSquare = Uint8Array.from(
  Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mN4oKCAFTEMLQkAUmxIAUwYLx4AAAAASUVORK5CYII=",
    "base64"
  )
)
