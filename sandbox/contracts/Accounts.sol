// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// An account of one owner with the outward form of Safe 1.4.1 without a fallback handler. It executes what its owner
/// has signed or sends, and what a module of its own asks for.
contract Safe {
    /// The parameters of execTransaction, one after another. As a struct they do not fill the EVM's stack.
    struct Signed {
        address to;
        uint256 value;
        bytes data;
        uint8 operation;
        uint256 safeTxGas;
        uint256 baseGas;
        uint256 gasPrice;
        address gasToken;
        address refundReceiver;
        bytes signatures;
    }

    bytes32 private constant DOMAIN = keccak256("EIP712Domain(uint256 chainId,address verifyingContract)");
    bytes32 private constant SAFE_TX = keccak256(
        "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)"
    );

    string public constant VERSION = "1.4.1";
    address private immutable owner;
    uint256 public nonce;
    mapping(address => bool) private modules;
    mapping(address => mapping(bytes32 => uint256)) public approvedHashes;

    event SafeReceived(address indexed sender, uint256 value);
    event ApproveHash(bytes32 indexed approvedHash, address indexed owner);
    event EnabledModule(address indexed module);
    event ExecutionSuccess(bytes32 indexed txHash, uint256 payment);
    event ExecutionFailure(bytes32 indexed txHash, uint256 payment);
    event ExecutionFromModuleSuccess(address indexed module);
    event ExecutionFromModuleFailure(address indexed module);

    constructor(address owner_) {
        owner = owner_;
    }

    receive() external payable {
        emit SafeReceived(msg.sender, msg.value);
    }

    fallback() external {}

    function getOwners() external view returns (address[] memory owners) {
        owners = new address[](1);
        owners[0] = owner;
    }

    function getThreshold() external pure returns (uint256) {
        return 1;
    }

    function isOwner(address who) external view returns (bool) {
        return who == owner;
    }

    function isModuleEnabled(address module) external view returns (bool) {
        return modules[module];
    }

    function enableModule(address module) external {
        require(msg.sender == address(this), "GS031");
        modules[module] = true;
        emit EnabledModule(module);
    }

    function approveHash(bytes32 hashToApprove) external {
        require(msg.sender == owner, "GS030");
        approvedHashes[msg.sender][hashToApprove] = 1;
        emit ApproveHash(hashToApprove, msg.sender);
    }

    function execTransaction(
        address,
        uint256,
        bytes calldata,
        uint8,
        uint256,
        uint256,
        uint256,
        address,
        address payable,
        bytes calldata
    ) external payable returns (bool success) {
        Signed memory given = abi.decode(bytes.concat(bytes32(uint256(32)), msg.data[4:]), (Signed));
        bytes32 txHash = _hash(given, nonce++);
        checkSignatures(txHash, given.signatures);
        success = _execute(given.to, given.value, given.data, given.operation);
        // A refund of gas is what the real one pays besides; this one knows none.
        require(success || given.safeTxGas != 0 || given.gasPrice != 0, "GS013");
        if (success) emit ExecutionSuccess(txHash, 0);
        else emit ExecutionFailure(txHash, 0);
    }

    function execTransactionFromModule(address to, uint256 value, bytes calldata data, uint8 operation)
        external
        returns (bool success)
    {
        require(modules[msg.sender], "GS104");
        success = _execute(to, value, data, operation);
        if (success) emit ExecutionFromModuleSuccess(msg.sender);
        else emit ExecutionFromModuleFailure(msg.sender);
    }

    /// r, s and v of the owner: v is 1 for what the owner sends or has approved, above 30 for a signed message.
    function checkSignatures(bytes32 dataHash, bytes memory signatures) public view {
        require(signatures.length >= 65, "GS020");
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly {
            r := mload(add(signatures, 32))
            s := mload(add(signatures, 64))
            v := byte(0, mload(add(signatures, 96)))
        }
        address signer;
        if (v == 1) {
            signer = address(uint160(uint256(r)));
            require(msg.sender == signer || approvedHashes[signer][dataHash] != 0, "GS025");
        } else if (v > 30) {
            signer = ecrecover(keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n32", dataHash)), v - 4, r, s);
        } else {
            signer = ecrecover(dataHash, v, r, s);
        }
        require(signer != address(0) && signer == owner, "GS026");
    }

    function domainSeparator() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN, block.chainid, this));
    }

    function _hash(Signed memory given, uint256 nonce_) private view returns (bytes32) {
        bytes memory head = abi.encode(SAFE_TX, given.to, given.value, keccak256(given.data), given.operation);
        bytes memory tail = abi.encode(
            given.safeTxGas, given.baseGas, given.gasPrice, given.gasToken, given.refundReceiver, nonce_
        );
        bytes32 inner = keccak256(bytes.concat(head, tail));
        return keccak256(abi.encodePacked(bytes1(0x19), bytes1(0x01), domainSeparator(), inner));
    }

    function onERC721Received(address, address, uint256, bytes calldata) external pure returns (bytes4) {
        return this.onERC721Received.selector;
    }

    function onERC1155Received(address, address, uint256, uint256, bytes calldata) external pure returns (bytes4) {
        return this.onERC1155Received.selector;
    }

    function _execute(address to, uint256 value, bytes memory data, uint8 operation) private returns (bool success) {
        if (operation == 1) (success,) = to.delegatecall(data);
        else (success,) = to.call{value: value}(data);
    }
}

struct PackedUserOperation {
    address sender;
    uint256 nonce;
    bytes initCode;
    bytes callData;
    bytes32 accountGasLimits;
    uint256 preVerificationGas;
    bytes32 gasFees;
    bytes paymasterAndData;
    bytes signature;
}

interface IAccount {
    function validateUserOp(PackedUserOperation calldata userOp, bytes32 userOpHash, uint256 missingAccountFunds)
        external
        returns (uint256 validationData);
}

/// The singleton of ERC-4337 with the outward form of version 0.7, for accounts that are there, pay by themselves and
/// name no aggregator.
contract EntryPoint {
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(uint192 => uint256)) private sequences;
    bool private entered;

    event BeforeExecution();
    event Deposited(address indexed account, uint256 totalDeposit);
    event UserOperationEvent(
        bytes32 indexed userOpHash,
        address indexed sender,
        address indexed paymaster,
        uint256 nonce,
        bool success,
        uint256 actualGasCost,
        uint256 actualGasUsed
    );
    event UserOperationRevertReason(
        bytes32 indexed userOpHash, address indexed sender, uint256 nonce, bytes revertReason
    );

    error FailedOp(uint256 opIndex, string reason);

    receive() external payable {
        depositTo(msg.sender);
    }

    function depositTo(address account) public payable {
        balanceOf[account] += msg.value;
        emit Deposited(account, balanceOf[account]);
    }

    function getNonce(address sender, uint192 key) public view returns (uint256) {
        return sequences[sender][key] | (uint256(key) << 64);
    }

    function getUserOpHash(PackedUserOperation calldata op) public view returns (bytes32) {
        bytes32 packed = keccak256(
            abi.encode(
                op.sender,
                op.nonce,
                keccak256(op.initCode),
                keccak256(op.callData),
                op.accountGasLimits,
                op.preVerificationGas,
                op.gasFees,
                keccak256(op.paymasterAndData)
            )
        );
        return keccak256(abi.encode(packed, address(this), block.chainid));
    }

    function handleOps(PackedUserOperation[] calldata ops, address payable beneficiary) external {
        require(!entered, "ReentrancyGuard: reentrant call");
        entered = true;
        for (uint256 i = 0; i < ops.length; i++) _validate(i, ops[i]);
        emit BeforeExecution();
        uint256 collected;
        for (uint256 i = 0; i < ops.length; i++) collected += _execute(ops[i]);
        (bool paid,) = beneficiary.call{value: collected}("");
        require(paid, "AA91 failed send to beneficiary");
        entered = false;
    }

    function _validate(uint256 index, PackedUserOperation calldata op) private {
        if (op.initCode.length != 0) revert FailedOp(index, "AA13 initCode failed or OOG");
        if (op.sender.code.length == 0) revert FailedOp(index, "AA20 account not deployed");
        if (op.paymasterAndData.length != 0) revert FailedOp(index, "AA30 paymaster not deployed");
        uint256 prefund = _prefund(op);
        uint256 deposit = balanceOf[op.sender];
        uint256 missing = deposit < prefund ? prefund - deposit : 0;
        uint256 limit = uint256(op.accountGasLimits) >> 128;
        uint256 said = IAccount(op.sender).validateUserOp{gas: limit}(op, getUserOpHash(op), missing);
        if (balanceOf[op.sender] < prefund) revert FailedOp(index, "AA21 didn't pay prefund");
        balanceOf[op.sender] -= prefund;
        if (sequences[op.sender][uint192(op.nonce >> 64)]++ != uint64(op.nonce)) {
            revert FailedOp(index, "AA25 invalid account nonce");
        }
        if (said != 0) revert FailedOp(index, "AA24 signature error");
    }

    /// What the operation cost, which its account has paid before.
    function _execute(PackedUserOperation calldata op) private returns (uint256 cost) {
        uint256 before = gasleft();
        bytes32 hash = getUserOpHash(op);
        (bool success, bytes memory said) = op.sender.call{gas: uint128(uint256(op.accountGasLimits))}(op.callData);
        if (!success) emit UserOperationRevertReason(hash, op.sender, op.nonce, said);
        uint256 used = before - gasleft() + op.preVerificationGas;
        cost = used * uint128(uint256(op.gasFees));
        uint256 prefund = _prefund(op);
        if (cost > prefund) cost = prefund;
        balanceOf[op.sender] += prefund - cost;
        emit UserOperationEvent(hash, op.sender, address(0), op.nonce, success, cost, used);
    }

    function _prefund(PackedUserOperation calldata op) private pure returns (uint256) {
        uint256 limits = uint256(op.accountGasLimits);
        return ((limits >> 128) + uint128(limits) + op.preVerificationGas) * uint128(uint256(op.gasFees));
    }
}

/// An account of one owner with the outward form of the SimpleAccount that comes with the entry point. Beside a
/// signature, the owner's approval of an operation's hash counts: whoever has no key here can still give that.
contract Account4337 is IAccount {
    address public owner;
    mapping(bytes32 => bool) public approved;

    constructor(address owner_) {
        owner = owner_;
    }

    receive() external payable {}

    fallback() external {}

    function entryPoint() public pure returns (address) {
        return 0x0000000071727De22E5E9d8BAf0edAc6f37da032;
    }

    function getNonce() external view returns (uint256) {
        return EntryPoint(payable(entryPoint())).getNonce(address(this), 0);
    }

    function approve(bytes32 userOpHash) external {
        require(msg.sender == owner, "account: not Owner");
        approved[userOpHash] = true;
    }

    function validateUserOp(PackedUserOperation calldata userOp, bytes32 userOpHash, uint256 missingAccountFunds)
        external
        returns (uint256 validationData)
    {
        require(msg.sender == entryPoint(), "account: not from EntryPoint");
        validationData = approved[userOpHash] || _signed(userOpHash, userOp.signature) ? 0 : 1;
        if (missingAccountFunds != 0) {
            (bool paid,) = payable(msg.sender).call{value: missingAccountFunds}("");
            (paid);
        }
    }

    function execute(address dest, uint256 value, bytes calldata func) external {
        _onlyEntryPointOrOwner();
        _call(dest, value, func);
    }

    function executeBatch(address[] calldata dest, uint256[] calldata value, bytes[] calldata func) external {
        _onlyEntryPointOrOwner();
        require(dest.length == func.length && dest.length == value.length, "wrong array lengths");
        for (uint256 i = 0; i < dest.length; i++) _call(dest[i], value[i], func[i]);
    }

    function onERC721Received(address, address, uint256, bytes calldata) external pure returns (bytes4) {
        return this.onERC721Received.selector;
    }

    function onERC1155Received(address, address, uint256, uint256, bytes calldata) external pure returns (bytes4) {
        return this.onERC1155Received.selector;
    }

    function _onlyEntryPointOrOwner() private view {
        require(msg.sender == entryPoint() || msg.sender == owner, "account: not Owner or EntryPoint");
    }

    function _signed(bytes32 userOpHash, bytes calldata signature) private view returns (bool) {
        if (signature.length != 65) return false;
        bytes32 hash = keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n32", userOpHash));
        return ecrecover(hash, uint8(signature[64]), bytes32(signature[:32]), bytes32(signature[32:64])) == owner;
    }

    function _call(address target, uint256 value, bytes calldata data) private {
        (bool success, bytes memory result) = target.call{value: value}(data);
        if (!success) {
            assembly {
                revert(add(result, 32), mload(result))
            }
        }
    }
}
