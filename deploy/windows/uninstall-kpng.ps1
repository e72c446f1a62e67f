<#
.SYNOPSIS
Takes the services of install-kpng.ps1 away again, and brings kube-proxy back when asked to.

.EXAMPLE
.\uninstall-kpng.ps1 -Dependents antrea-agent -AddressesLike 10.96.* -RestoreKubeProxy
#>
[CmdletBinding(SupportsShouldProcess)]
param(
  [string] $Nssm = 'nssm.exe',
  # The services that were given as -Dependents when kpng was installed.
  [string[]] $Dependents = @(),
  # What the addresses of Services look like. kpng takes its own away when it is stopped; those that a crash left are taken from the
  # interface here.
  [string] $AddressesLike = '',
  [string] $Interface = 'vEthernet (HNS Internal NIC)',
  [switch] $RestoreKubeProxy,
  [string] $LogFolder = 'C:\var\log\kpng',
  [switch] $RemoveLogs
)

$ErrorActionPreference = 'Stop'

function Invoke-Program([string] $Program, [string[]] $Arguments) {
  & $Program @Arguments | Out-Null
  if ($LASTEXITCODE -ne 0) { throw "$Program $($Arguments -join ' ') failed with $LASTEXITCODE." }
}

if (-not $PSCmdlet.ShouldProcess($env:COMPUTERNAME, 'remove the services of kpng')) { return }

# The backend before the core that it depends on.
foreach ($name in @('kpng-backend', 'kpng')) {
  if (-not (Get-Service -Name $name -ErrorAction SilentlyContinue)) { continue }
  foreach ($dependent in $Dependents) { Invoke-Program $Nssm @('set', $dependent, 'DependOnService', "-$name") }
  Stop-Service -Name $name -Force
  Invoke-Program $Nssm @('remove', $name, 'confirm')
}

if ($AddressesLike -ne '') {
  Get-NetIPAddress -InterfaceAlias $Interface |
    Where-Object { $_.IPAddress -like $AddressesLike } |
    Remove-NetIPAddress -Confirm:$false
}
if ($RestoreKubeProxy) {
  Set-Service -Name kube-proxy -StartupType Automatic
  Start-Service -Name kube-proxy
  foreach ($dependent in $Dependents) {
    Invoke-Program $Nssm @('set', $dependent, 'DependOnService', '+kube-proxy')
    Start-Service -Name $dependent
  }
}
if ($RemoveLogs) { Remove-Item -LiteralPath $LogFolder -Recurse -Force }
